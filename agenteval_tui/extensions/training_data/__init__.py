"""Conversations that models are trained with: ShareGPT and the like."""

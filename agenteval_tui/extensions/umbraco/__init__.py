"""Tests of Umbraco AI, in and out."""

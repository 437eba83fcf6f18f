"""The screens: a thin skin over the layers below."""

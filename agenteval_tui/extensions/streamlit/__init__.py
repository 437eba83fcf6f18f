"""Apps of Streamlit as agents: the kind `python`, with `callable: app.py`."""

"""The project's performance figures. Each module measures one subject, beside the comparison it needs."""

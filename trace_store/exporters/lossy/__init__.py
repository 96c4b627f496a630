"""What export formats share: fitting a session into a format, and counting what is lost."""

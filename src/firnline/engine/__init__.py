"""The data plane: PySpark over Spark Connect. Only this package holds sessions."""

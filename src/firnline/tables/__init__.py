"""The log: PyIceberg tables, their publish rule, sidecars and the control table. No JVM."""

"""Spark settings that a stage's meaning depends on: pinned for every session and part of every fingerprint."""

PINNED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
ZONE = "-Duser.timezone=UTC"
"""The same for what no session is asked about: a moment without a zone that comes by JDBC is taken for one of the JVM's zone."""

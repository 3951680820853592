"""The best source IPs as they were after an earlier epoch."""

import firnline as fl

best = fl.read("amplab.top_sources", as_of="2026-01-02")
best.orderBy("source_ip").show()
visits, ranks = fl.read("amplab.user_visits", "amplab.rankings")

"""Landing files for the AMPLab pipeline: rankings (with later changes) and user visits, a folder per day, always the same.

Usage: python bench/amplab_data.py FOLDER [--pages 200] [--visits 1000] [--days 3]
"""

from __future__ import annotations

import argparse
import csv
import random
from datetime import date, timedelta
from pathlib import Path

_COUNTED = ("visit_id", "source_ip", "dest_url", "visit_date", "ad_revenue")
VISIT = (*_COUNTED, "user_agent", "country_code", "language_code", "search_word", "duration")
WORDS = ("glacier", "snow", "névé", "ice, blue", 'the "firn"', "Gletscher", "雪", "crevasse")
COUNTRIES = ("CHE", "NOR", "ISL", "CAN", "NPL", "")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--visits", type=int, default=1000)
    parser.add_argument("--days", type=int, default=3)
    given = parser.parse_args()
    chance = random.Random(1980)
    ranks: dict[str, tuple[int, int]] = {}
    for day in range(given.days):
        folder = given.folder / (date(2026, 1, 1) + timedelta(days=day)).isoformat()
        folder.mkdir(parents=True, exist_ok=True)
        write_rankings(folder / "rankings.csv", chance, ranks, given.pages, day)
        write_visits(folder / "user_visits.csv", chance, sorted(ranks), given.visits, day)


def write_rankings(path: Path, chance: random.Random, ranks: dict[str, tuple[int, int]], pages: int, day: int) -> None:
    """New pages on the first day; later a few change their rank, a few vanish, a few appear."""
    lines: list[tuple[str, str, int, int]] = []
    if day:
        for url in chance.sample(sorted(ranks), max(2, pages // 20)):
            lines.append(("-", url, *ranks.pop(url)))
            if chance.random() < 0.7:
                ranks[url] = (chance.randrange(1, 1000), chance.randrange(1, 100))
                lines.append(("+", url, *ranks[url]))
    for number in range(pages if not day else pages // 20):
        url = f"site{day}-{number}.example/{chance.choice(('a', 'b', 'ü'))}"
        ranks[url] = (chance.randrange(1, 1000), chance.randrange(1, 100))
        lines.append(("+", url, *ranks[url]))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("change", "page_url", "page_rank", "avg_duration"))
        writer.writerows(lines)


def write_visits(path: Path, chance: random.Random, urls: list[str], visits: int, day: int) -> None:
    """Visits of 1979 to 1981, some late, two records malformed."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", escapechar="\\", doublequote=False)
        writer.writerow(VISIT)
        for number in range(visits):
            moment = date(1979, 7, 1) + timedelta(days=chance.randrange(900))
            ip = f"10.{day}.{chance.randrange(4)}.{int(chance.paretovariate(1.2)) % 250}"
            revenue: object = f"{chance.randrange(1, 100_000) / 10_000:.4f}"
            if number in (visits // 3, visits // 2):
                revenue, moment = ("n/a", moment) if number % 2 else (revenue, "yesterday")  # type: ignore[assignment]
            country = chance.choice(COUNTRIES)
            writer.writerow(
                (
                    f"{day}-{number}",
                    ip,
                    chance.choice(urls) if chance.random() < 0.95 else f"gone.example/{number}",
                    moment,
                    revenue,
                    chance.choice(("Lynx/2.8", "Mosaic/3.0", "curl")),
                    country,
                    f"{country.lower()}-x" if country else "",
                    chance.choice(WORDS),
                    chance.randrange(1, 600),
                )
            )


if __name__ == "__main__":
    main()

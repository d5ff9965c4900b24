#!/usr/bin/env python3
"""Draws a recorded timeline as an SVG: `docs/draw_timeline.py traces/concurrent.json docs/timeline.svg [FROM_MS TO_MS]`.

Spans only, a row a lane (overlapping rows of one lane are drawn over each other), and the busy time as a number.
Needs nothing beside Python's own library.
"""

import json
import sys
from xml.sax.saxutils import escape

LEFT, WIDTH, ROW, TOP = 190, 790, 19, 30
COLOURS = {"sessions": "#8aa9c9", "actors": "#c9a26b", "queue": "#9a86bd", "upload": "#6fae8f", "compute": "#cf6a5d",
           "readback": "#4f9db0"}


def lanes_of(events):
    """Rows `(pid, tid) -> (group, lane)`, in the file's order of groups and lanes."""
    groups, rows, order = {}, {}, {}
    for event in events:
        if event["ph"] != "M":
            continue
        key, args = (event["pid"], event.get("tid")), event["args"]
        if event["name"] == "process_name":
            groups[event["pid"]] = args["name"]
        elif event["name"] == "thread_name":
            rows[key] = args["name"]
        elif event["name"] == "thread_sort_index":
            order[key] = args["sort_index"]
    def place(key):
        return key[0], order.get(key, key[1])
    return {key: (groups.get(key[0], ""), rows[key].split(" (")[0]) for key in sorted(rows, key=place)}


def main():
    source, target = sys.argv[1:3]
    with open(source, encoding="utf-8") as file:
        events = json.load(file)
    lanes = lanes_of(events)
    spans = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) in lanes]
    begin, end = min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans)
    if len(sys.argv) > 3:
        begin, end = begin + 1e3 * float(sys.argv[3]), begin + 1e3 * float(sys.argv[4])
    scale = WIDTH / (end - begin)
    by_lane = {}
    for event in spans:
        if event["ts"] < end and event["ts"] + event["dur"] > begin:
            lane = lanes[(event["pid"], event["tid"])]
            # An ended process has no thread to show; tracing's own rows repeat the actors'.
            if not lane[1].startswith("tracing"):
                by_lane.setdefault(lane, []).append(event)
    order = [lane for lane in dict.fromkeys(lanes.values()) if lane in by_lane]
    body, y, last = [], TOP, None
    for lane in order:
        group, name = lane
        if group != last:
            y += 16
            body.append(f'<text class="g" x="8" y="{y}">{escape(group)}</text>')
            y, last = y + 6, group
        colour = COLOURS.get(name, COLOURS.get(group, "#999999"))
        short = name.split(": ")[-1]
        body.append(f'<text x="16" y="{y + 13}">{escape(short[:24])}</text>')
        body.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y + ROW - 1}" y2="{y + ROW - 1}"/>')
        for event in sorted(by_lane[lane], key=lambda e: e["ts"]):
            x = LEFT + (max(event["ts"], begin) - begin) * scale
            width = max((min(event["ts"] + event["dur"], end) - max(event["ts"], begin)) * scale, 0.7)
            title = f'{event["name"]}: {event["dur"] / 1e3:.3f} ms'
            body.append(f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 5}" fill="{colour}" '
                        f'fill-opacity="0.75"><title>{escape(title)}</title></rect>')
            if width > 7 * len(event["name"]):
                body.append(f'<text class="s" x="{x + 3:.1f}" y="{y + 12}">{escape(event["name"])}</text>')
        y += ROW
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if (end - begin) / 1e3 / s <= 12)
    ticks = []
    for n in range(int((end - begin) / 1e3 / step) + 1):
        x = LEFT + n * step * 1e3 * scale
        ticks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{y}"/>')
        ticks.append(f'<text class="t" x="{x:.1f}" y="{TOP - 12}">{n * step:g}{" ms" if n == 0 else ""}</text>')
    style = ("text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#333}.g{font-weight:600}.s{font-size:10px;fill:#111}"
             ".t{font-size:11px;fill:#666;text-anchor:middle}line{stroke:#e3e3e3}")
    size = f'{LEFT + WIDTH + 20} {y + 10}'
    with open(target, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">\n'
                   f'<title>A timeline</title>\n<style>{style}</style>\n<rect width="100%" height="100%" fill="#ffffff"/>\n')
        file.write("\n".join(ticks + body))
        file.write("\n</svg>\n")


main()

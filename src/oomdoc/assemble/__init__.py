"""Tables become a report: incidents weighed, traffic, timeline, what came near failing, the lines behind each reference."""

"""Work on the event loop: polling, deadlines and long work in slices. Pure: timing_wheel.py."""

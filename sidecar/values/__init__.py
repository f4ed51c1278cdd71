"""Values and their text: endpoints, exit statuses, waits between writes, and foreign text made safe to show. Pure."""

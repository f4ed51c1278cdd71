"""Values and their text: endpoints, exit statuses, and foreign text made safe to show. Pure."""

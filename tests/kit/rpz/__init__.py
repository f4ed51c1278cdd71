"""Real resolvers and servers as secondaries of our policy zone, each set up with the lines of the guide's page."""

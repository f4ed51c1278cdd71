"""`dnsproxy install --watch`: keeps the stanza in the cluster's DNS, whoever renders its configuration again."""

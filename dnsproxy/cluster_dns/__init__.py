"""Reads and asks what serves the cluster's DNS; writes nothing.

Pure but for exchange.py, options.py, probing.py, read.py and rewrite_probing.py.
"""

# find.py is discovery: from the Service (cluster_service.py) to its workload (servers.py), its Corefile (arguments.py,
# volumes.py, pod_files.py), the imports of that (imports.py) and the cache on the nodes (node_local.py); kube_dns.py
# reads the keys of kube-dns and node-cache. requests.py says what has to be read for it, read.py reads that over the
# API, and found.py is the result. owner.py judges who would undo an edit, method_choice.py chooses the method of an
# install (method_remarks.py has its limits in words, rewrite_place.py finds where rewrite lines work), refusal.py has
# the reasons against a change, traces.py finds what is installed. routes.py says which block and forward serve a zone
# without the stanza, taken_hosts.py which lines of others come before it. own_service.py looks at dnsproxy's own
# Service. probing.py asks DNS servers whether dnsproxy answers, rewrite_probing.py whether they rewrite;
# probe_results.py judges their answers. original_upstreams.py compares where dnsproxy forwards with where the DNS did;
# upstream_config.py reads the latter for `dnsproxy serve`.

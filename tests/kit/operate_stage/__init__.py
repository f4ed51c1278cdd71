"""A node without a kubelet, in a network namespace: a real control plane, kube-proxy and ingress controllers.

The law: as tests/kit/doctor_stage. dnsproxy, the relay and operate run in it as programs; a test creates their Pods,
and sets addresses and readiness as a kubelet does.
"""

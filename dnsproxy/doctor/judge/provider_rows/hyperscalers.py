"""Rows of the clouds that have several kinds of load balancer.

The law: as provider.py says.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from dnsproxy.doctor.judge.annotation_values import (
    attributes,
    exactly,
    in_any_case,
    in_tree_attributes,
    one_or_two,
    only_ports,
    trimmed_in_any_case,
)
from dnsproxy.doctor.judge.header_annotations import HeaderSwitch
from dnsproxy.doctor.judge.provider import Kind, Provider, Source, StatusSetting

_BETA: Final = "service.beta.kubernetes.io/"
_READ: Final = date(2026, 11, 22)
_READ_IP_MODE: Final = date(2026, 11, 23)

_OCI: Final = "oracle/oci-cloud-controller-manager"
_OCI_NLB: Final = "NLBs"
_OCI_LB: Final = "LBs"
ORACLE: Final = Provider(
    "Oracle",
    sources=(Source(_OCI, "pkg/cloudprovider/providers/oci/load_balancer_spec.go", "v1.35.0", _READ),),
    marks=(f"{_BETA}oci-load-balancer-", "oci.oraclecloud.com/", "oci-network-load-balancer.oraclecloud.com/"),
    schemes=("oci", "ocid1"),
    kinds=(
        Kind(_OCI_NLB, "oci.oraclecloud.com/load-balancer-type", ("nlb",), any_case=True),
        Kind(_OCI_LB),
    ),
    switches=(
        HeaderSwitch(f"{_BETA}oci-load-balancer-connection-proxy-protocol-version", one_or_two, "1", (_OCI_LB,)),
        HeaderSwitch(
            "oci-network-load-balancer.oraclecloud.com/is-ppv2-enabled",
            in_any_case("true"),
            "true",
            (_OCI_NLB,),
            "oci-cloud-controller-manager v1.28.2, v1.29.1, v1.30.0 or newer",
        ),
    ),
    ip_mode=StatusSetting(
        "oci.oraclecloud.com/ingress-ip-mode", "proxy", since="oci-cloud-controller-manager v1.29.2, v1.30.0"
    ),
)
_ALIBABA: Final = "kubernetes/cloud-provider-alibaba-cloud"
_CLB: Final = "CLB"
_ALIBABA_NLB: Final = "NLB"
ALIBABA: Final = Provider(
    "Alibaba",
    sources=(
        Source(_ALIBABA, "pkg/controller/service/clbv1/listeners.go", "v2.14.0", _READ),
        Source(_ALIBABA, "pkg/controller/service/nlbv2/listeners.go", "v2.14.0", _READ),
        Source(_ALIBABA, "pkg/controller/service/clbv1/service_controller.go", "v2.14.0", _READ),
        Source(_ALIBABA, "pkg/controller/service/nlbv2/nlb_controller.go", "v2.14.0", _READ_IP_MODE),
    ),
    marks=(f"{_BETA}alibaba-cloud-loadbalancer-", f"{_BETA}alicloud-loadbalancer-"),
    classes=("alibabacloud.com/",),
    schemes=("alicloud",),
    kinds=(Kind(_ALIBABA_NLB, classes=("alibabacloud.com/nlb",)), Kind(_CLB)),
    switches=(
        HeaderSwitch(f"{_BETA}alibaba-cloud-loadbalancer-proxy-protocol", exactly("on"), "on", (_CLB,)),
        HeaderSwitch(f"{_BETA}alicloud-loadbalancer-proxy-protocol", exactly("on"), "", (_CLB,)),
        HeaderSwitch(f"{_BETA}alibaba-cloud-loadbalancer-proxy-protocol", in_any_case("on"), "on", (_ALIBABA_NLB,)),
        HeaderSwitch(f"{_BETA}alicloud-loadbalancer-proxy-protocol", in_any_case("on"), "", (_ALIBABA_NLB,)),
    ),
    writes_no_ip_mode=True,
    hostname=StatusSetting(
        f"{_BETA}alibaba-cloud-loadbalancer-hostname",
        note="on CLB; an NLB has a hostname by itself",
        kinds=(_CLB,),
    ),
)
_IN_TREE: Final = "kubernetes/cloud-provider-aws"
_LBC: Final = "kubernetes-sigs/aws-load-balancer-controller"
_TYPE: Final = f"{_BETA}aws-load-balancer-type"
_HEADER: Final = f"{_BETA}aws-load-balancer-proxy-protocol"
_ATTRIBUTES: Final = f"{_BETA}aws-load-balancer-target-group-attributes"
_NLB: Final = "NLBs of the AWS Load Balancer Controller"
_IN_TREE_NLB: Final = "NLBs of cloud-provider-aws"
_CLASSIC: Final = "Classic Load Balancers"
NETWORK_KINDS: Final = frozenset([_NLB, _IN_TREE_NLB])
"""The kinds of AWS that are network load balancers."""
AWS: Final = Provider(
    "AWS",
    sources=(
        Source(_IN_TREE, "pkg/providers/v1/aws.go", "63ec440c3275", _READ),
        Source(_IN_TREE, "pkg/providers/v1/aws_loadbalancer.go", "63ec440c3275", _READ),
        Source(_IN_TREE, "pkg/providers/v1/aws_validations.go", "63ec440c3275", _READ),
        Source(_LBC, "pkg/service/model_build_target_group.go", "v3.5.0", _READ),
        Source(_LBC, "docs/install/iam_policy.json", "v3.5.0", _READ),
        Source(_LBC, "controllers/service/service_controller.go", "v3.5.0", _READ_IP_MODE),
    ),
    marks=(f"{_BETA}aws-load-balancer-",),
    classes=("service.k8s.aws/", "eks.amazonaws.com/"),
    schemes=("aws",),
    kinds=(
        Kind(_NLB, _TYPE, ("external", "nlb-ip"), classes=("service.k8s.aws/", "eks.amazonaws.com/")),
        Kind(_IN_TREE_NLB, _TYPE, ("nlb",)),
        Kind(_CLASSIC),
    ),
    switches=(
        HeaderSwitch(_HEADER, exactly("*"), "*", (_NLB, _CLASSIC)),
        HeaderSwitch(
            f"{_HEADER}-per-target-group",
            only_ports,
            "",
            (_NLB,),
            "AWS Load Balancer Controller v2.13.0 or newer",
            part="its ports, such as `80,443`",
        ),
        HeaderSwitch(f"{_ATTRIBUTES}.{{port}}", attributes, "", (_NLB,)),
        HeaderSwitch(_ATTRIBUTES, attributes, "", (_NLB,)),
        HeaderSwitch(
            _ATTRIBUTES,
            in_tree_attributes,
            "proxy_protocol_v2.enabled=true",
            (_IN_TREE_NLB,),
            "cloud-provider-aws v1.32.6, v1.33.3, v1.34.2 or v1.35.0 in their series (backports of December 2025), and "
            "the permissions elasticloadbalancing:DescribeTargetGroupAttributes and "
            "elasticloadbalancing:ModifyTargetGroupAttributes",
        ),
    ),
    writes_no_ip_mode=True,
    note="its status has only a hostname, so nothing is short-circuited",
    unverified="the controller of EKS Auto Mode (eks.amazonaws.com/nlb), which is not public; it is taken for the AWS "
    "Load Balancer Controller",
)
_AZURE: Final = "kubernetes-sigs/cloud-provider-azure"
_PRIVATE_LINK: Final = "private link services"
AZURE: Final = Provider(
    "Azure",
    sources=(
        Source(_AZURE, "pkg/provider/azure_privatelinkservice.go", "v1.36.0", _READ),
        Source(_AZURE, "pkg/provider/azure_utils.go", "7b31c76ce2ff", _READ),
        Source(_AZURE, "pkg/provider/azure_loadbalancer.go", "7b31c76ce2ff", _READ_IP_MODE),
    ),
    marks=(f"{_BETA}azure-",),
    schemes=("azure",),
    kinds=(
        Kind(_PRIVATE_LINK, f"{_BETA}azure-pls-create", ("true",), any_case=True),
        Kind("load balancers"),
    ),
    switches=(
        HeaderSwitch(
            f"{_BETA}azure-pls-proxy-protocol",
            trimmed_in_any_case("true"),
            "true",
            (_PRIVATE_LINK,),
            f'`{_BETA}azure-pls-create: "true"`',
        ),
    ),
    never_sends=True,
    passes_packets=True,
    writes_no_ip_mode=True,
    note="its load balancers preserve the client's address and have no PROXY header; only a private link service "
    "has one",
)
GOOGLE: Final = Provider(
    "Google Cloud",
    sources=(
        Source("kubernetes/cloud-provider-gcp", "providers/gce/gce_loadbalancer_external.go", "v36.3.8", _READ),
        Source("kubernetes/cloud-provider-gcp", "providers/gce/gce_loadbalancer_internal.go", "v36.3.8", _READ_IP_MODE),
        Source("kubernetes/ingress-gce", "pkg/apis/serviceattachment/v1/types.go", "01c9c5513641", _READ),
    ),
    marks=("cloud.google.com/", "networking.gke.io/"),
    schemes=("gce",),
    never_sends=True,
    passes_packets=True,
    writes_no_ip_mode=True,
    note="its Services' load balancers pass packets through and have no PROXY header; only a ServiceAttachment with "
    "proxyProtocol adds one",
)

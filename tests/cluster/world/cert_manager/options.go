package main

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
	"github.com/cert-manager/cert-manager/pkg/util/feature"
)

type options struct {
	controller.ContextOptions
	leaderElect             bool
	leaderElectionNamespace string
	workers                 int
	metricsAddress          string
	healthzAddress          string
	logging                 *logsapi.LoggingConfiguration
	version                 bool
}

// parseOptions reads the flags. Their help texts are short: cert-manager's own documentation explains them.
func parseOptions(args []string) (*options, error) {
	chosen := &options{logging: logsapi.NewLoggingConfiguration()}
	flags := pflag.NewFlagSet("cert-manager", pflag.ContinueOnError)
	processFlags(flags, chosen)
	acmeFlags(flags, &chosen.ACMEOptions)
	finish := certificateFlags(flags, chosen)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	finish()
	return chosen, nil
}

func processFlags(flags *pflag.FlagSet, chosen *options) {
	flags.BoolVar(&chosen.version, "version", false, "print the version")
	flags.StringVar(&chosen.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty means in the cluster")
	flags.StringVar(&chosen.APIServerHost, "master", "", "address of the API server")
	flags.Float32Var(&chosen.KubernetesAPIQPS, "kube-api-qps", 20, "queries per second to the API server")
	flags.IntVar(&chosen.KubernetesAPIBurst, "kube-api-burst", 50, "burst of queries to the API server")
	flags.BoolVar(&chosen.leaderElect, "leader-elect", true, "wait for the lease")
	flags.StringVar(&chosen.leaderElectionNamespace, "leader-election-namespace", "kube-system", "namespace of the lease")
	flags.IntVar(&chosen.workers, "concurrent-workers", 5, "workers of each controller")
	flags.IntVar(&chosen.MaxConcurrentChallenges, "max-concurrent-challenges", 60, "challenges in process at once")
	flags.StringVar(&chosen.metricsAddress, "metrics-listen-address", "0.0.0.0:9402", "address of /metrics")
	flags.StringVar(&chosen.healthzAddress, "healthz-listen-address", "0.0.0.0:9403", "address of /livez")
	flags.BoolVar(&chosen.EnableGatewayAPI, "enable-gateway-api", false, "watch Gateways and HTTPRoutes")
	feature.DefaultMutableFeatureGate.AddFlag(flags)
	logs.AddFlags(chosen.logging, flags)
}

func acmeFlags(flags *pflag.FlagSet, acme *controller.ACMEOptions) {
	solver := "acme-http01-solver-"
	image := "quay.io/jetstack/cert-manager-acmesolver:" + util.AppVersion
	flags.StringVar(&acme.HTTP01SolverImage, solver+"image", image, "image of the solver")
	flags.StringSliceVar(&acme.HTTP01SolverNameservers, solver+"nameservers", nil,
		"nameservers of the self check, ADDR:PORT")
	flags.BoolVar(&acme.ACMEHTTP01SolverRunAsNonRoot, solver+"run-as-non-root", true, "require a user other than root")
	flags.StringToStringVar(&acme.HTTP01SolverExtraLabels, solver+"extra-labels", nil, "labels of the solver's objects")
	quantity(flags, &acme.HTTP01SolverResourceRequestCPU, solver+"resource-request-cpu", "10m")
	quantity(flags, &acme.HTTP01SolverResourceRequestMemory, solver+"resource-request-memory", "64Mi")
	quantity(flags, &acme.HTTP01SolverResourceLimitsCPU, solver+"resource-limits-cpu", "100m")
	quantity(flags, &acme.HTTP01SolverResourceLimitsMemory, solver+"resource-limits-memory", "64Mi")
	flags.StringSliceVar(&acme.DNS01Nameservers, "dns01-recursive-nameservers", nil, "nameservers of the DNS-01 check")
	flags.DurationVar(&acme.DNS01CheckRetryPeriod, "dns01-check-retry-period", 10*time.Second, "time between checks")
}

// certificateFlags returns what to set after parsing.
func certificateFlags(flags *pflag.FlagSet, chosen *options) func() {
	issuers, shim, certificates := &chosen.IssuerOptions, &chosen.IngressShimOptions, &chosen.CertificateOptions
	flags.StringVar(&issuers.ClusterResourceNamespace, "cluster-resource-namespace", "kube-system",
		"namespace of a ClusterIssuer's Secrets")
	flags.BoolVar(&issuers.ClusterIssuerAmbientCredentials, "cluster-issuer-ambient-credentials", true,
		"ClusterIssuers may use the machine's credentials")
	flags.BoolVar(&issuers.IssuerAmbientCredentials, "issuer-ambient-credentials", false,
		"Issuers may use the machine's credentials")
	flags.StringVar(&shim.DefaultIssuerName, "default-issuer-name", "", "issuer of Ingresses that name none")
	flags.StringVar(&shim.DefaultIssuerKind, "default-issuer-kind", "Issuer", "its kind")
	flags.StringVar(&shim.DefaultIssuerGroup, "default-issuer-group", "cert-manager.io", "its API group")
	flags.StringSliceVar(&shim.DefaultAutoCertificateAnnotations, "auto-certificate-annotations",
		[]string{"kubernetes.io/tls-acme"}, "annotations of an Ingress that mean the default issuer")
	flags.BoolVar(&certificates.EnableOwnerRef, "enable-certificate-owner-ref", false,
		"delete the Secret with its Certificate")
	flags.StringSliceVar(&certificates.CopiedAnnotationPrefixes, "copied-annotation-prefixes",
		[]string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
		"annotations to copy from a Certificate; - excludes")
	backoff := "time between failed requests: "
	flags.DurationVar(&certificates.CertificateRequestMinimumBackoffDuration,
		"certificate-request-minimum-backoff-duration", time.Hour, backoff+"the first")
	flags.DurationVar(&certificates.CertificateRequestMaximumBackoffDuration,
		"certificate-request-maximum-backoff-duration", 32*time.Hour, backoff+"the longest")
	only := flags.Bool("dns01-recursive-nameservers-only", false, "never ask authoritative nameservers")
	return func() { chosen.DNS01CheckAuthoritative = !*only }
}

// quantity defines a flag for an amount of a resource.
func quantity(flags *pflag.FlagSet, amount *resource.Quantity, name, standard string) {
	*amount = resource.MustParse(standard)
	flags.Func(name, "of the solver's pod (default "+standard+")", func(text string) (err error) {
		*amount, err = resource.ParseQuantity(text)
		return err
	})
}

// cert-manager's controller and its ACME solver, against the published packages: cert-manager does not publish the
// modules of its own programs. Flags and defaults are those of the real programs, so their manifests work here too. A
// flag that is missing here is an error.
//
//	cert-manager [FLAG...]
//	cert-manager acmesolver --domain NAME --token TOKEN --key KEY [--listen-port PORT]
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	logs.InitLogs()
	defer logs.FlushLogs()
	run, args := manage, os.Args[1:]
	if len(args) > 0 && args[0] == "acmesolver" {
		run, args = solve, args[1:]
	}
	if err := run(ctx, args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// solve answers one HTTP-01 challenge until the pod is deleted.
func solve(ctx context.Context, args []string) error {
	server := solver.HTTP01Solver{}
	flags := pflag.NewFlagSet("acmesolver", pflag.ContinueOnError)
	flags.IntVar(&server.ListenPort, "listen-port", 8089, "port of the server")
	flags.StringVar(&server.Domain, "domain", "", "domain name of the challenge")
	flags.StringVar(&server.Token, "token", "", "token of the challenge")
	flags.StringVar(&server.Key, "key", "", "content of the answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// The solver creates its server when it starts to listen; a solver holds no state, so the process may just end.
	context.AfterFunc(ctx, func() { os.Exit(0) })
	return server.Listen(logs.Log)
}

// A manager is one process of the controller.
type manager struct {
	ctx     context.Context
	group   *errgroup.Group
	options *options
	factory *controller.ContextFactory
	shared  *controller.Context
}

// manage runs the controller until ctx ends or one part fails.
func manage(ctx context.Context, args []string) error {
	chosen, err := parseOptions(args)
	if err != nil {
		return err
	}
	if chosen.version {
		fmt.Println(util.AppVersion)
		return nil
	}
	m, err := newManager(ctx, chosen)
	if err != nil {
		return err
	}
	health := healthz.NewServer(20 * time.Second)
	m.group.Go(func() error { return m.serveHealth(health) })
	m.group.Go(m.serveMetrics)
	m.group.Go(func() error { return m.lead(health.LeaderHealthzAdaptor) })
	return m.group.Wait()
}

func newManager(ctx context.Context, chosen *options) (*manager, error) {
	if err := logs.ValidateAndApply(chosen.logging); err != nil {
		return nil, err
	}
	m := &manager{options: chosen}
	m.group, m.ctx = errgroup.WithContext(logs.NewContext(ctx, logs.Log, "controller"))
	var err error
	if m.factory, err = controller.NewContextFactory(m.ctx, chosen.ContextOptions); err != nil {
		return nil, err
	}
	m.shared, err = m.factory.Build()
	return m, err
}

func (m *manager) serveMetrics() error {
	listener, err := net.Listen("tcp", m.options.metricsAddress)
	if err != nil {
		return err
	}
	metrics, kinds := m.shared.Metrics, m.shared.SharedInformerFactory.Certmanager().V1()
	metrics.SetupACMECollector(m.shared.SharedInformerFactory.Acme().V1().Challenges().Lister())
	metrics.SetupCertificateCollector(kinds.Certificates().Lister())
	metrics.SetupIssuerCollector(kinds.Issuers().Lister())
	metrics.SetupClusterIssuerCollector(kinds.ClusterIssuers().Lister())
	server := metrics.NewServer(listener)
	context.AfterFunc(m.ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

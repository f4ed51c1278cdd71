package main

import (
	"github.com/cert-manager/cert-manager/pkg/controller"

	// Each of these packages registers a controller or an issuer. Those of Vault and Venafi are excluded.
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	gateways "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/gateways"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// runControllers starts every controller, then the informers that they asked for.
func (m *manager) runControllers() error {
	for name, build := range controller.Known() {
		if name == gateways.ControllerName && !m.options.EnableGatewayAPI {
			continue
		}
		one, err := build(m.factory)
		if err != nil {
			return err
		}
		m.group.Go(func() error { return one.Run(m.options.workers, m.ctx) })
	}
	m.shared.SharedInformerFactory.Start(m.ctx.Done())
	m.shared.KubeSharedInformerFactory.Start(m.ctx.Done())
	m.shared.HTTP01ResourceMetadataInformersFactory.Start(m.ctx.Done())
	if m.shared.GatewaySolverEnabled {
		m.shared.GWShared.Start(m.ctx.Done())
	}
	return nil
}

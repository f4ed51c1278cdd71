package main

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/cert-manager/cert-manager/pkg/healthz"
)

// lead runs the controllers: at once, or while this process holds the lease. Its loss ends the process.
func (m *manager) lead(health *leaderelection.HealthzAdaptor) error {
	if !m.options.leaderElect {
		return m.runControllers()
	}
	lock, err := m.lease()
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   60 * time.Second,
		RenewDeadline:   40 * time.Second,
		RetryPeriod:     15 * time.Second,
		ReleaseOnCancel: true,
		WatchDog:        health,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { m.group.Go(m.runControllers) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(m.ctx)
	if m.ctx.Err() == nil {
		return errors.New("the lease is lost")
	}
	return nil
}

func (m *manager) lease() (resourcelock.Interface, error) {
	host, err := os.Hostname()
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: m.options.leaderElectionNamespace, Name: "cert-manager-controller"},
		Client:    m.shared.Client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{
			Identity:      host + "-external-cert-manager-controller",
			EventRecorder: m.shared.Recorder,
		},
	}, err
}

// serveHealth answers the liveness probe, which fails when the lease is not renewed.
func (m *manager) serveHealth(health *healthz.Server) error {
	listener, err := net.Listen("tcp", m.options.healthzAddress)
	if err != nil {
		return err
	}
	return health.Start(m.ctx, listener)
}

package gomlx

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// BackendName is the name of the backend in GoMLX's configuration.
const BackendName = "mlx"

func init() { backends.Register(BackendName, New) }

// New returns a backend on the configured device: "cpu", "gpu", or "" for MLX's default device. It returns an error if
// MLX cannot be loaded or the device is not available.
func New(config string) (backends.Backend, error) {
	if err := mlxc.Check(); err != nil {
		return nil, err
	}
	device := mlxc.DefaultDevice()
	switch config {
	case "":
	case "cpu":
		device = mlxc.CPU
	case "gpu":
		device = mlxc.GPU
	default:
		return nil, fmt.Errorf("gomlx: the configuration of the backend mlx is %q; it must be empty, cpu or gpu", config)
	}
	if !device.Available() {
		return nil, fmt.Errorf("gomlx: this machine or this build of MLX has no device %v", device)
	}
	if device == mlxc.CPU {
		skipFusing()
	}
	return &backend{device: device}, nil
}

// skipFusing turns off the fusing of compiled functions. On a CPU, MLX fuses with the system's C++ compiler, half a second
// per kernel. The graphs of GoMLX have many kernels, and gain nothing that would pay for the time.
var skipFusing = sync.OnceFunc(func() {
	previous, err := mlxc.SetCompileMode(mlxc.CompileNoFuse)
	if err == nil && previous != mlxc.CompileEnabled { // the program has chosen another mode
		_, _ = mlxc.SetCompileMode(previous)
	}
})

// backend implements backends.Backend on one device. Any goroutine may use it.
type backend struct {
	device    mlxc.Device
	finalized atomic.Bool
}

var _ backends.Backend = (*backend)(nil)

func (b *backend) Name() string   { return BackendName }
func (b *backend) String() string { return BackendName }

func (b *backend) Description() string {
	return fmt.Sprintf("MLX %s on the %v", mlxc.Version(), b.device)
}

func (b *backend) NumDevices() int { return 1 }

func (b *backend) DeviceDescription(backends.DeviceNum) string { return b.device.String() }

func (b *backend) Builder(name string) backends.Builder {
	builder := &builder{backend: b, name: name}
	builder.main = builder.newFunction(backends.MainName, nil)
	return builder
}

// Finalize marks the backend as invalid. Buffers and executables free their own memory.
func (b *backend) Finalize()         { b.finalized.Store(true) }
func (b *backend) IsFinalized() bool { return b.finalized.Load() }

var errFinalized = errors.New("gomlx: the backend was finalized")

// outsideScopes runs f on the backend's device, in a scope of its own: it frees every array made in f that f does not
// Keep. Kept arrays belong to the garbage collector, even if the caller is inside a scope of package mlxc.
func (b *backend) outsideScopes(f func() error) (err error) {
	if b.IsFinalized() {
		return errFinalized
	}
	deviceErr := mlxc.WithDevice(b.device, func() {
		mlxc.OutsideScopes(func() { err = mlxc.WithScopeErr(f) })
	})
	return errors.Join(deviceErr, err)
}

// notImplemented returns an error that wraps GoMLX's error for operations that a backend does not have.
func notImplemented(format string, args ...any) error {
	return fmt.Errorf("gomlx: %s: %w", fmt.Sprintf(format, args...), backends.ErrNotImplemented)
}

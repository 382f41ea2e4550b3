package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A launcher is how an operation launches its kernels. It is an argument, so that
// Launches can ask for the geometry of another device and see every launch.
type launcher struct {
	device device
	// instead, if it is not nil, takes the place of Kernel.Launch.
	instead func(k *customkernels.Kernel, l customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array
}

// onCurrentDevice launches as the current stream's device likes it.
func onCurrentDevice() launcher { return launcher{device: currentDevice()} }

func (on launcher) launch(k *customkernels.Kernel, l customkernels.Launch, inputs ...*mlxc.Array) []*mlxc.Array {
	if on.instead != nil {
		return on.instead(k, l, inputs)
	}
	return k.Launch(l, inputs...)
}

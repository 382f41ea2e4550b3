package sanitizer

import (
	"fmt"
	"math"
	"slices"
)

// maxBytes is the largest size of a buffer in bytes, 1 TiB.
const maxBytes = 1 << 40

// checkBuffers returns an error if a shape or dtype is invalid. [Kernel.Check] does not check these, because MLX does.
func (k *Kernel) checkBuffers(l Launch, inputs []Array) error {
	for i, b := range k.loaded.Source.Inputs {
		if err := checkBuffer(b.Name, inputs[i].DType, inputs[i].Shape); err != nil {
			return err
		}
	}
	for i, b := range k.loaded.Source.Outputs {
		if err := checkBuffer(b.Name, l.Outputs[i].DType, l.Outputs[i].Shape); err != nil {
			return err
		}
	}
	return nil
}

func checkBuffer(name string, d DType, shape []int) error {
	if d.Size() == 0 {
		return fmt.Errorf("the buffer %s has the dtype %v: give it one of %v", name, d, DTypes())
	}
	for _, n := range shape {
		if n < 0 {
			return fmt.Errorf("the buffer %s has a negative axis: %v", name, shape)
		}
		if n > math.MaxInt32 {
			return fmt.Errorf("the buffer %s has an axis above %d: %v", name, math.MaxInt32, shape)
		}
	}
	if slices.Contains(shape, 0) {
		return nil
	}
	size := d.Size()
	for _, n := range shape {
		if size > maxBytes/n {
			return fmt.Errorf("the buffer %s is larger than 1 TiB: %v", name, shape)
		}
		size *= n
	}
	return nil
}

// checkData returns an error if the size of an input's or in-out buffer's data does not match its shape and dtype.
func (k *Kernel) checkData(l Launch, inputs []Array) error {
	for i, b := range k.loaded.Source.Inputs {
		if err := checkData(b.Name, inputs[i]); err != nil {
			return err
		}
	}
	for name, a := range l.InOut {
		if err := checkData(name, a); err != nil {
			return err
		}
	}
	return nil
}

func checkData(name string, a Array) error {
	if want := a.Size() * a.DType.Size(); len(a.Data) != want {
		return fmt.Errorf("the buffer %s has %d bytes of data: %v%v needs %d",
			name, len(a.Data), a.DType, a.Shape, want)
	}
	return nil
}

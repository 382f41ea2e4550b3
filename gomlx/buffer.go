package gomlx

import (
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// buffer implements backends.Buffer.
type buffer struct {
	backend *backend
	shape   shapes.Shape

	mu    sync.Mutex
	array *mlxc.Array // nil after finalize
}

// asBuffer returns the array of a live buffer of this backend.
func (b *backend) asBuffer(op string, value backends.Buffer) (*buffer, *mlxc.Array, error) {
	buf, ok := value.(*buffer)
	if !ok || buf == nil || buf.backend != b {
		return nil, nil, fmt.Errorf("gomlx: %s: the buffer is a %T; it must be a buffer of this backend", op, value)
	}
	if b.IsFinalized() {
		return nil, nil, errFinalized
	}
	buf.mu.Lock()
	defer buf.mu.Unlock()
	if buf.array == nil {
		return nil, nil, fmt.Errorf("gomlx: %s: the buffer was finalized or donated", op)
	}
	return buf, buf.array, nil
}

// free releases the buffer's memory, unless a running computation needs it.
func (buf *buffer) free() {
	buf.mu.Lock()
	defer buf.mu.Unlock()
	buf.array.Free()
	buf.array = nil
}

// BufferFinalize frees the buffer. It is an error to finalize a buffer twice.
func (b *backend) BufferFinalize(value backends.Buffer) error {
	buf, _, err := b.asBuffer("BufferFinalize", value)
	if err != nil {
		return err
	}
	buf.free()
	return nil
}

// BufferShape returns the shape of the buffer.
func (b *backend) BufferShape(value backends.Buffer) (shapes.Shape, error) {
	buf, _, err := b.asBuffer("BufferShape", value)
	if err != nil {
		return shapes.Invalid(), err
	}
	return buf.shape, nil
}

// BufferDeviceNum returns 0, the number of the backend's only device.
func (b *backend) BufferDeviceNum(value backends.Buffer) (backends.DeviceNum, error) {
	_, _, err := b.asBuffer("BufferDeviceNum", value)
	return 0, err
}

// BufferToFlatData copies the elements of the buffer to flat.
func (b *backend) BufferToFlatData(value backends.Buffer, flat any) error {
	buf, array, err := b.asBuffer("BufferToFlatData", value)
	if err != nil {
		return err
	}
	data, err := flatData(flat, buf.shape)
	if err != nil {
		return err
	}
	return codecs[buf.shape.DType].write(array, data)
}

// BufferFromFlatData returns a buffer with a copy of flat.
func (b *backend) BufferFromFlatData(device backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	if err := b.checkDevice("BufferFromFlatData", device); err != nil {
		return nil, err
	}
	if err := b.checkShape("BufferFromFlatData", shape); err != nil {
		return nil, err
	}
	data, err := flatData(flat, shape)
	if err != nil {
		return nil, err
	}
	buf := &buffer{backend: b, shape: shape.Clone()}
	err = b.outsideScopes(func() error {
		buf.array = codecs[shape.DType].read(data, shape.Size(), shape.Dimensions).Keep()
		return buf.array.Err()
	})
	if err != nil {
		return nil, err
	}
	return buf, nil
}

func (b *backend) checkDevice(op string, device backends.DeviceNum) error {
	if device != 0 {
		return fmt.Errorf("gomlx: %s: the device number is %d; the backend has only device 0", op, device)
	}
	return nil
}

// HasSharedBuffers returns false: MLX arrays are immutable, and a view of an array shares its memory.
func (b *backend) HasSharedBuffers() bool { return false }

// NewSharedBuffer returns backends.ErrNotImplemented.
func (b *backend) NewSharedBuffer(backends.DeviceNum, shapes.Shape) (backends.Buffer, any, error) {
	return nil, nil, notImplemented("NewSharedBuffer: MLX arrays are immutable")
}

// BufferData returns backends.ErrNotImplemented.
func (b *backend) BufferData(backends.Buffer) (any, error) {
	return nil, notImplemented("BufferData: MLX arrays are immutable")
}

// BufferCopyToDevice returns an error: the backend has one device, and GoMLX excludes copies within a device.
func (b *backend) BufferCopyToDevice(value backends.Buffer, device backends.DeviceNum) (backends.Buffer, error) {
	if _, _, err := b.asBuffer("BufferCopyToDevice", value); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("gomlx: BufferCopyToDevice: the device number is %d; the backend has only device 0, where the "+
		"buffer is", device)
}

package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"strconv"
	"strings"
)

// Count returns the number of devices of this kind. Operations run on the first device.
func (d Device) Count() (int, error) {
	const op = "Device.Count"
	if err := Check(); err != nil {
		return 0, opError(op, err)
	}
	if d != CPU && d != GPU {
		return 0, opError(op, fmt.Errorf("there is no device %v", d))
	}
	var n C.int
	if e := C.mlxg_device_count(&n, C.int(d)); e != nil {
		return 0, opError(op, takeError(e))
	}
	return int(n), nil
}

// Info returns MLX's properties of device number index, counted from 0. Values are strings, or ints; sizes of memory
// are in bytes. All devices have "device_name" and "architecture". GPUs have, among others, "memory_size" and
// "max_recommended_working_set_size" (Metal), or "total_memory", "free_memory", "compute_capability_major",
// "compute_capability_minor", "uuid" and "pci_bus_id" (CUDA).
func (d Device) Info(index int) (map[string]any, error) {
	const op = "Device.Info"
	count, err := d.Count()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= count {
		return nil, opError(op, fmt.Errorf("there is no %v %d: the device count is %d", d, index, count))
	}
	var lines *C.char
	if e := C.mlxg_device_info(C.int(d), C.int(index), &lines); e != nil {
		return nil, opError(op, takeError(e))
	}
	values := map[string]any{}
	for line := range strings.Lines(takeString(lines)) {
		key, typed, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		kind, value, _ := strings.Cut(typed, "\t")
		values[key] = value
		if kind == "number" {
			number, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return nil, opError(op, err)
			}
			values[key] = int(number)
		}
	}
	return values, nil
}

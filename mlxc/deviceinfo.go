package mlxc

/*
#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP
static char* device_count(int* count, int type) {
  return mlxg_end_status(mlx_device_count(count, (mlx_device_type)type));
}
static char* device_info(mlx_device_info* info, mlx_vector_string* keys, int type, int index) {
  mlx_device d = mlx_device_new_type((mlx_device_type)type, index);
  *info = mlx_device_info_new();
  *keys = mlx_vector_string_new();
  int rc = mlx_device_info_get(info, d);
  if (rc == 0) {
    rc = mlx_device_info_get_keys(keys, *info);
  }
  mlx_device_free(d);
  return mlxg_end_status(rc);
}
#endif
*/
import "C"

import "fmt"

// Count returns the number of devices of this kind. Operations run on the first.
func (d Device) Count() (int, error) {
	const op = "Device.Count"
	if initError != nil {
		return 0, opError(op, initError)
	}
	if d != CPU && d != GPU {
		return 0, opError(op, fmt.Errorf("there is no device %v", d))
	}
	var n C.int
	if e := C.device_count(&n, C.int(d)); e != nil {
		return 0, opError(op, takeText(e))
	}
	return int(n), nil
}

// Info returns what MLX knows of a device, by its number from 0. Values are texts
// (string) or sizes (int), the latter in bytes where they are memory. All devices have
// "device_name" and "architecture"; on a GPU there are, among others, "memory_size" and
// "max_recommended_working_set_size" (Metal), or "total_memory", "free_memory",
// "compute_capability_major", "compute_capability_minor", "uuid" and "pci_bus_id" (CUDA).
func (d Device) Info(index int) (map[string]any, error) {
	const op = "Device.Info"
	count, err := d.Count()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= count {
		return nil, opError(op, fmt.Errorf("there is no %v %d: this machine, as MLX was built, has %d", d, index, count))
	}
	var info C.mlx_device_info
	var keys C.mlx_vector_string
	e := C.device_info(&info, &keys, C.int(d), C.int(index))
	defer C.mlx_device_info_free(info)
	defer C.mlx_vector_string_free(keys)
	if e != nil {
		return nil, opError(op, takeText(e))
	}
	values := map[string]any{}
	for i := range C.mlx_vector_string_size(keys) {
		var key, text *C.char
		C.mlx_vector_string_get(&key, keys, i)
		var isText C.bool
		C.mlx_device_info_is_string(&isText, info, key)
		if isText {
			C.mlx_device_info_get_string(&text, info, key)
			values[C.GoString(key)] = C.GoString(text)
			continue
		}
		var size C.size_t
		C.mlx_device_info_get_size(&size, info, key)
		values[C.GoString(key)] = int(size)
	}
	return values, nil
}

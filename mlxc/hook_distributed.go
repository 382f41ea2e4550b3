package mlxc

// #include "mlxg.h"
import "C"

import (
	"unsafe"

	"github.com/mlxgrad/mlxgrad/mlxc/internal/hook"
)

// init registers the functions through which package distributed uses groups of processes. See package hook.
func init() {
	hook.SetGroups(hook.Groups[*Array, DType]{
		Available:   groupAvailable,
		Init:        initGroup,
		Split:       splitGroup,
		Free:        func(group unsafe.Pointer) { C.mlxg_group_free(group) },
		Rank:        func(group unsafe.Pointer) int { return int(C.mlxg_group_rank(group)) },
		Size:        func(group unsafe.Pointer) int { return int(C.mlxg_group_size(group)) },
		Backend:     func(group unsafe.Pointer) string { return C.GoString(C.mlxg_group_backend(group)) },
		Collect:     groupCollect,
		Send:        groupSend,
		Receive:     groupReceive,
		ReceiveLike: groupReceiveLike,
	})
}

func groupAvailable(backend string) bool {
	if Check() != nil {
		return false
	}
	name := C.CString(backend)
	defer C.free(unsafe.Pointer(name))
	return bool(C.mlxg_group_available(name))
}

func initGroup(backend string, strict bool) (group unsafe.Pointer, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	name := C.CString(backend)
	defer C.free(unsafe.Pointer(name))
	if e := C.mlxg_group_init(&group, C.bool(strict), name); e != nil {
		return nil, takeError(e)
	}
	return group, nil
}

func splitGroup(group unsafe.Pointer, color, key int) (part unsafe.Pointer, err error) {
	c, err := cInts([]int{color, key})
	if err != nil {
		return nil, err
	}
	if e := C.mlxg_group_split(&part, group, c[0], c[1]); e != nil {
		return nil, takeError(e)
	}
	return part, nil
}

var collectives = map[string]C.int{
	"all_sum": C.MLXG_ALL_SUM, "all_max": C.MLXG_ALL_MAX, "all_min": C.MLXG_ALL_MIN,
	"all_gather": C.MLXG_ALL_GATHER, "sum_scatter": C.MLXG_SUM_SCATTER,
}

func groupCollect(group unsafe.Pointer, op string, x *Array) *Array {
	return groupCall(op, x, func(ctx unsafe.Pointer) C.mlxg_result {
		return C.mlxg_group_collect(collectives[op], ctx, group)
	})
}

func groupSend(group unsafe.Pointer, x *Array, dst int) *Array {
	return groupCall("send", x, func(ctx unsafe.Pointer) C.mlxg_result {
		return C.mlxg_group_send(ctx, C.int(dst), group)
	})
}

func groupReceiveLike(group unsafe.Pointer, x *Array, src int) *Array {
	return groupCall("recv_like", x, func(ctx unsafe.Pointer) C.mlxg_result {
		return C.mlxg_group_receive_like(ctx, C.int(src), group)
	})
}

func groupReceive(group unsafe.Pointer, src int, d DType, shape []int) *Array {
	const op = "recv"
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err))
	}
	c := cShape(shape)
	return wrap(op, C.mlxg_group_receive(&c[0], C.size_t(len(shape)), C.int(d.c()), C.int(src), group))
}

func groupCall(op string, x *Array, call func(ctx unsafe.Pointer) C.mlxg_result) *Array {
	ctx, err := x.acquire()
	if err != nil {
		return invalid(operandError(op, err, 0, x))
	}
	defer x.release()
	return wrap(op, call(ctx), x)
}

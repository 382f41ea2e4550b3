package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// checkIDs returns an error if ids are valid but not integers.
func checkIDs(ids *Array) error {
	switch d := ids.DType(); {
	case d == Bool:
		return errors.New("the ids are bool: they must be integers; the result of a boolean mask has no static " +
			"shape: use Where or MaskedScatter")
	case d != Invalid && !d.IsInteger():
		return fmt.Errorf("the ids are %v: they must be integers", d)
	}
	return nil
}

// limitIDs returns ids that MLX can use safely. The allowed ids are 0 … last. A negative id stands for id + wrap; if
// wrap is 0, negative ids are not allowed. MLX does not check ids: its backends would access memory outside the array.
// If the ids are already computed, an id out of range is an error. Otherwise the nearest allowed id replaces it. The
// caller must call free after its last use of limited.
func limitIDs(ids *Array, wrap, last int) (limited *Array, free func(), err error) {
	free = func() {}
	if err := checkIDs(ids); err != nil || ids.Size() == 0 || last < 0 {
		return ids, free, err
	}
	if computed, err := ids.checkRange(wrap, last); computed || err != nil {
		return ids, free, err
	}
	WithScope(func() {
		i := ids.StopGradient()
		low := 0
		switch {
		case wrap == last+1:
			low = -wrap
		case wrap > 0 && i.DType() >= Int8:
			// The allowed negative ids, −wrap … last−wrap, do not border on 0. Add wrap to all negative ids.
			i = i.AsType(Int64)
			i = Where(i.Less(Scalar(int64(0))), i.Add(Scalar(int64(wrap))), i)
		}
		least, greatest := i.DType().integerRange()
		if low > least {
			i = i.Maximum(integer(i.DType(), low))
		}
		if last < greatest {
			i = i.Minimum(integer(i.DType(), last))
		}
		limited = i.Keep()
	})
	return limited, limited.Free, nil
}

// limitAll is limitIDs for the ids of several axes. wrap(i) and last(i) belong to ids[i].
func limitAll(ids []*Array, wrap, last func(i int) int) (limited []*Array, free func(), err error) {
	var frees []func()
	free = func() {
		for _, f := range frees {
			f()
		}
	}
	for i, x := range ids {
		x, f, err := limitIDs(x, wrap(i), last(i))
		if err != nil {
			free()
			return nil, nil, err
		}
		limited, frees = append(limited, x), append(frees, f)
	}
	return limited, free, nil
}

// FindOutside returns the row-major position and the value of the first element of an integer array that is outside low
// … high and not `except`, which may be in the range. The position is −1 if there is none, and also if the elements
// cannot be read without waiting: if they are not computed, or on a CUDA device unless the array is host-backed (see
// IsHostBacked).
//
// It is for packages that build operations.
func (ids *Array) FindOutside(low, high, except int) (position, value int) {
	at, id, err := ids.findID(idRange{first: low, last: high, except: except})
	if err != nil || at < 0 {
		return -1, 0
	}
	return at, int(id)
}

// idRange is the key of a check of ids. The fields are the parameters of mlxg_find_id.
type idRange struct{ wrap, first, last, except int }

// findID calls mlxg_find_id, but only once for ids that are all valid; see CheckOnce. On CUDA, ids that are not in host
// memory count as not computed.
func (ids *Array) findID(valid idRange) (at int, id C.int64_t, err error) {
	if !ids.IsHostBacked() && CurrentBackend() == BackendCUDA {
		return C.MLXG_NOT_COMPUTED, 0, nil
	}
	d := ids.info()
	if d.hasPassed(valid) {
		return C.MLXG_NO_ID, 0, nil
	}
	ctx, err := ids.acquire()
	if err != nil {
		return C.MLXG_NOT_COMPUTED, 0, err
	}
	defer ids.release()
	at = int(C.mlxg_find_id(ctx, C.int64_t(valid.wrap), C.int64_t(valid.first), C.int64_t(valid.last),
		C.int64_t(valid.except), &id))
	if at == C.MLXG_NO_ID {
		d.pass(valid)
	}
	return at, id, nil
}

// checkRange reports whether the ids are computed, and returns an error if one is out of range.
func (ids *Array) checkRange(wrap, last int) (computed bool, err error) {
	at, id, err := ids.findID(idRange{wrap: wrap, last: last})
	switch {
	case err != nil || at == C.MLXG_NOT_COMPUTED:
		return false, err
	case at == C.MLXG_NO_ID:
		return true, nil
	}
	position := make([]int, ids.NDim())
	for i, n := range slices.Backward(ids.Shape()) {
		position[i], at = at%n, at/n
	}
	allowed := fmt.Sprintf("0 … %d", last)
	if wrap > 0 && ids.DType() >= Int8 {
		allowed = fmt.Sprintf("%d … %d", -wrap, last)
		if wrap > last+1 {
			allowed = fmt.Sprintf("0 … %d or %d … %d", last, -wrap, last-wrap)
		}
	}
	value := fmt.Sprint(int64(id))
	if ids.DType() == Uint64 {
		value = fmt.Sprint(uint64(id))
	}
	return true, fmt.Errorf("the id at %v is %s: it must be in %s", position, value, allowed)
}

// integer returns a scalar of an integer dtype. It copies the low bytes of an int64: all platforms of MLX are
// little-endian.
func integer(d DType, value int) *Array {
	v := int64(value)
	return newLeaf("Scalar", unsafe.Pointer(&v), nil, d)
}

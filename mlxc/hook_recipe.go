package mlxc

// #include "mlxg.h"
import "C"

import (
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/internal/recipe"
)

// init registers the functions that package ops needs for recorded graphs. See package recipe.
func init() {
	recipe.Set(applyRecipe)
	recipe.GradientDepth = currentGradientDepth
	recipe.Launches = func() uint64 {
		if Check() != nil {
			return 0
		}
		return uint64(C.mlxg_recipe_launches())
	}
}

func applyRecipe(
	id uint64, args []*Array, visible int,
	forward func(args []*Array) []*Array, backward func(primals, cotangents, outputs []*Array) []*Array,
) []*Array {
	const op = "CustomVJP"
	var few [16]C.uintptr_t
	var results []*Array
	h, err := acquireIn(few[:], op, args)
	if err == nil {
		r := C.mlxg_recipe_apply(C.uint64_t(id), h.ptr(), h.n())
		h.release()
		results, err = wrapAll(op, r, args...)
	}
	switch {
	case len(results) > 0:
		return results
	case forward == nil:
		return nil
	case err != nil:
		return invalidArrays(1, err)
	}
	var outputs atomic.Int64
	c := customCall{op: op, stream: currentStream()}
	return callClosure(op, args, &outputs, func(h handles) C.mlxg_results {
		return C.mlxg_recipe_record(C.uint64_t(id), register(recordingCount(c.recordingOutputs(forward), &outputs)),
			C.size_t(visible), register(c.vjp(backward)), h.ptr(), h.n())
	})
}

package customkernels

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

// fixedValues holds a reference for the corrected twin of each bug. It returns the outputs in the order of the launch
// description, given the inputs by name. A nil output is scratch memory and is not compared.
var fixedValues = map[string]func(in map[string][]float64) [][]float64{
	"aliased_views": func(in map[string][]float64) [][]float64 {
		var sums, differences []float64
		for i, a := range in["a"] {
			sums = append(sums, a+in["b"][i])
			differences = append(differences, a-in["b"][i])
		}
		return [][]float64{append(sums, differences...)}
	},
	"arms_of_branch": ofX(rowsOf(32, func(x []float64) []float64 {
		return perElementOf(x, func(int) float64 { return x[31] })
	})),
	"barrier_after_exit": ofX(reversed),
	"barrier_skipped_in_loop": ofX(func(x []float64) []float64 {
		return append(doubled(x[:32]), add(doubled(x[32:]), x[32:])...)
	}),
	"barrier_in_helper_of_branches": ofX(rowsOf(64, mirroredPositive)),
	"barrier_in_uneven_loop":        ofX(func(x []float64) []float64 { return reversed(add(x[:64], append(x[64:96:96], make([]float64, 32)...))) }),
	"barrier_within_condition":      ofX(rowsOf(64, total)),
	"barriers_of_different_turns":   ofX(reversed),
	"broadcast_of_many_lanes":       ofX(rowsOf(32, reversed)),
	"quad_broadcast_of_many_lanes":  ofX(rowsOf(4, reversed)),
	"shuffle_by_different_deltas": ofX(rowsOf(4, func(x []float64) []float64 {
		return perElementOf(x, func(int) float64 { return x[0] })
	})),
	"reduction_in_both_branches": ofX(rowsOf(32, func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return total(x)[0] * float64(1-2*(i%2)) })
	})),
	"shuffle_in_helper_of_branches": ofX(rowsOf(2, func(x []float64) []float64 {
		return []float64{3 * total(x)[0], 2 * total(x)[0]}
	})),
	"broadcast_from_inactive_lane": ofX(rowsOf(32, func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[i] - x[0]*min(1, float64(i)) })
	})),
	"counter_cleared_too_late": ofX(rowsOf(64, func(x []float64) []float64 { return count(x, func(v float64) bool { return v > 0 }) })),
	"cross_group_producer_consumer": ofX(func(x []float64) []float64 {
		return append([]float64{0}, mlxtest.ByRow(x[:96], 32, total)...)
	}),
	"cross_group_race":           ofX(doubled),
	"divergent_barrier":          ofX(rowsOf(64, reversed)),
	"divergent_matrix":           productOfAAndB,
	"divergent_reduction_at_end": ofX(rowsOf(32, func(x []float64) []float64 { return total(x[:20]) })),
	"divergent_reduction": ofX(rowsOf(32, func(x []float64) []float64 {
		return append(perElementOf(x[:20], func(int) float64 { return total(x[:20])[0] }), x[20:]...)
	})),
	"divergent_simdgroup_barrier": ofX(exchanged(1)),
	"division_by_zero": func(in map[string][]float64) [][]float64 {
		return [][]float64{perElementOf(in["x"], func(i int) float64 {
			if in["d"][i] == 0 {
				return 0
			}
			return math.Trunc(in["x"][i] / in["d"][i])
		})}
	},
	"endless_loop": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 {
			steps := 0.0
			for n := int(x[i]); n > 1; steps++ {
				if n%2 == 1 {
					n = 3*n + 1
				} else {
					n /= 2
				}
			}
			return steps
		})
	}),
	"fence_of_device_memory": ofX(rowsOf(64, reversed)),
	"fence_of_nothing":       ofX(exchanged(32)),
	"fence_of_threadgroup_memory": func(in map[string][]float64) [][]float64 {
		return [][]float64{nil, doubled(mlxtest.ByRow(in["x"], 64, reversed))}
	},
	"flag_without_fence":    sumByLastGroup,
	"fence_of_wrong_memory": sumByLastGroup,
	"fence_of_narrow_scope": sumByLastGroup,
	"histogram_not_atomic": ofX(func(x []float64) []float64 {
		bins := make([]float64, 8)
		for _, v := range x {
			bins[int(v)]++
		}
		return bins
	}),
	"in_place_device_memory":    ofX(func(x []float64) []float64 { return doubled(reversed(x)) }),
	"index_overflow":            ofX(func(x []float64) []float64 { return x }),
	"last_simdgroup_dropped":    ofX(total),
	"last_sum_dropped_by_lanes": ofX(total),
	"never_read_maxima": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[i] - slices.Max(x) })
	}),
	"write_to_input": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[i] * min(1, float64(i%32)) })
	}),
	"thread_array_underrun":    ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return float64(4 - i%4) }) }),
	"thread_member_overrun":    ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return float64(i%4 + 1) }) }),
	"uninitialized_comparison": ofX(func(x []float64) []float64 { return make([]float64, len(x)) }),
	"uninitialized_minimum":    ofX(rowsOf(16, func(x []float64) []float64 { return []float64{slices.Min(x)} })),
	"write_after_read":         ofX(doubled),
	"wrong_value":              ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return 2*x[i] + 1 }) }),
	"index_wraps_around": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[i/2+i%2*32] })
	}),
	"lockstep":                     ofX(rowsOf(32, total)),
	"lockstep_exchange":            ofX(exchanged(1)),
	"matrix_tile_without_barrier":  ofX(func(x []float64) []float64 { return append(transposed8(x[64:]), transposed8(x[:64])...) }),
	"misaligned_threadgroup_store": ofX(func(x []float64) []float64 { return x }),
	"misaligned_vector_load":       ofX(rowsOf(33, total)),
	"mixed_atomic_and_plain":       ofX(func(x []float64) []float64 { return []float64{slices.Max(x)} }),
	"mixed_sizes_overlap": ofX(func(x []float64) []float64 {
		return perElementOf(append(x, x...), func(i int) float64 { return x[i/2] })
	}),
	"negative_index": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[i] + append([]float64{0}, x...)[i] })
	}),
	"neighbor_slot_too_early": ofX(func(x []float64) []float64 {
		return reversed(perElementOf(x, func(i int) float64 { return x[i%32] + x[i%32+32] + x[i%32+64] + x[i%32+96] }))
	}),
	"never_read": ofX(func(x []float64) []float64 {
		return perElementOf(x[:32], func(i int) float64 { return max(x[i], x[i+32]) })
	}),
	"off_the_end_of_threadgroup_array": ofX(func(x []float64) []float64 {
		return perElementOf(x[:64], func(i int) float64 { return x[i] + x[i+1] + x[i+2] })
	}),
	"order_dependent_sum": ofX(total),
	"out_of_bounds_in_constant_table": func(in map[string][]float64) [][]float64 {
		return [][]float64{perElementOf(in["index"], func(i int) float64 { return in["table"][i%4] })}
	},
	"out_of_bounds_in_helper": ofX(func(x []float64) []float64 { return append(mlxtest.ByRow(x, 16, total), 0) }),
	"out_of_bounds_matrix_load": ofX(func(x []float64) []float64 {
		left := mlxtest.ByRow(x, 12, func(row []float64) []float64 { return row[:8] })
		return append(left, mlxtest.ByRow(x, 12, func(row []float64) []float64 { return row[4:] })...)
	}),
	"out_of_bounds_read": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return append(x, x[63])[i+1] - x[i] })
	}),
	"out_of_bounds_write":            ofX(func(x []float64) []float64 { return append([]float64{0}, x[:63]...) }),
	"overlapping_vector_stores":      ofX(doubled),
	"reduction_read_without_barrier": ofX(rowsOf(128, total)),
	"reduction_slots_reused": func(in map[string][]float64) [][]float64 {
		least := mlxtest.ByRow(in["x"], 64, func(x []float64) []float64 { return []float64{slices.Min(x)} })
		return [][]float64{least, mlxtest.ByRow(in["x"], 64, func(x []float64) []float64 { return []float64{slices.Max(x)} })}
	},
	"overrun_into_other_array": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[(i+1)%32] + 2*x[i] + x[31-i] })
	}),
	"quad_shuffle_from_inactive_lane": ofX(rowsOf(4, func(x []float64) []float64 {
		return add(x, []float64{x[1], 0, x[1], x[1]})
	})),
	"vector_load_over_end": ofX(func(x []float64) []float64 { return mlxtest.ByRow(x, 4, total) }),
	"rows_overlap":         ofX(doubled),
	"same_value_writes": ofX(rowsOf(64, func(x []float64) []float64 {
		return []float64{min(1, count(x, func(v float64) bool { return v < 0 })[0])}
	})),
	"select_is_no_guard":         ofX(func(x []float64) []float64 { return append(x, 0, 0, 0, 0) }),
	"shared_sum_not_atomic":      ofX(total),
	"shuffle_from_inactive_lane": ofX(rowsOf(32, func(x []float64) []float64 { return append(add(x[:16], x[16:]), x[16:]...) })),
	"shuffle_beyond_simdgroup":   ofX(rowsOf(32, func(x []float64) []float64 { return append(slices.Clone(x[1:]), x[0]) })),
	"shuffle_beyond_quadgroup":   ofX(rowsOf(4, func(x []float64) []float64 { return append(slices.Clone(x[1:]), x[0]) })),
	"shuffle_in_short_simdgroup": ofX(func(x []float64) []float64 {
		return append(mlxtest.ByRow(x[:32], 32, func(x []float64) []float64 { return add(x, append(x[16:32:32], x[:16]...)) }), x[32:]...)
	}),
	"simdgroup_barrier_for_threadgroup": ofX(exchanged(32)),
	"simdgroup_result_too_early":        ofX(mlxtest.PrefixSums),
	"slots_reused_in_row_loop":          ofX(rowsOf(64, total)),
	"stack_overflow":                    ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return x[i] * x[i] }) }),
	"stencil_in_place": ofX(func(x []float64) []float64 {
		return reversed(perElementOf(x, func(i int) float64 { return (x[i] + x[(i+32)%64]) / 2 }))
	}),
	"thread_array_overrun": ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return float64(i%4 + 1) }) }),
	"shift_too_wide": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return float64(uint64(0x9e3779b9) & (1<<i - 1)) })
	}),
	"vector_index_overrun":            ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return float64(i%4 + 1) }) }),
	"thread_array_overrun_by_pointer": ofX(func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return float64(i%4 + 1) }) }),
	"thread_array_ruins_stack": func(in map[string][]float64) [][]float64 {
		return [][]float64{perElementOf(in["n"], func(i int) float64 { n := min(in["n"][i], 8); return n * (n - 1) / 2 })}
	},
	"tile_row_overrun": ofX(func(x []float64) []float64 {
		return perElementOf(x[:64], func(i int) float64 { return x[i/8*8+(i+1)%8] + x[i+8] })
	}),
	"threadgroup_larger_than_array": ofX(rowsOf(96, reversed)),
	"tile_reused_in_loop":           ofX(rowsOf(64, reversed)),
	"too_many_threads":              ofX(doubled),
	"too_much_threadgroup_memory":   ofX(reversed),
	"transposed_index": ofX(func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return x[i%4*16+i/4] })
	}),
	"tree_reduction_of_48":         ofX(rowsOf(48, total)),
	"tree_reduction_of_simdgroups": ofX(rowsOf(96, total)),
	"uninitialized_matrix":         productOfAAndB,
	"uninitialized_maximum":        ofX(rowsOf(16, func(x []float64) []float64 { return []float64{slices.Max(x)} })),
	"uninitialized_variable":       ofX(rowsOf(16, total)),
	"uninitialized_variable_vanishes": func(in map[string][]float64) [][]float64 {
		return [][]float64{perElementOf(in["g"], func(i int) float64 {
			if i >= 500 {
				return 0
			}
			return in["g"][i] / (1 + math.Exp(-in["g"][i]))
		})}
	},
	"unwritten_lane":            ofX(doubled),
	"unwritten_output":          ofX(doubled),
	"uninitialized_output_read": ofX(func(x []float64) []float64 { return x }),
	"structure_by_value": ofX(rowsOf(500, func(x []float64) []float64 {
		sum, greatest := 0.0, slices.Max(x)
		for _, v := range x {
			sum += math.Exp(v - greatest)
		}
		return perElementOf(x, func(i int) float64 { return math.Exp(x[i]-greatest) / sum })
	})),
	"structure_copied": func(in map[string][]float64) [][]float64 {
		bodies := slices.Collect(slices.Chunk(in["bodies"], 4))
		length := func(x, y, z float64) float64 { return math.Sqrt(x*x + y*y + z*z) }
		var found []float64
		for _, b := range bodies {
			nearest := bodies[0]
			for _, o := range bodies[1:] {
				if length(o[0]-b[0], o[1]-b[1], o[2]-b[2])*o[3] < nearest[3] {
					nearest = o
				}
			}
			found = append(found, nearest[3]*length(nearest[0], nearest[1], nearest[2]))
		}
		return [][]float64{found}
	},
	"uninitialized_padding":          ofX(rowsOf(50, total)),
	"uninitialized_threadgroup_slot": ofX(rowsOf(128, total)),
	"value_shared_without_barrier": ofX(rowsOf(64, func(x []float64) []float64 {
		return perElementOf(x, func(i int) float64 { return 2 * x[0] * x[i] })
	})),
	"waits_for_other_group": func(in map[string][]float64) [][]float64 { return [][]float64{{1}, in["x"]} },
}

func productOfAAndB(in map[string][]float64) [][]float64 {
	return [][]float64{mlxtest.MatMul(in["a"], in["b"], 8, 8, 8, false)}
}

// sumByLastGroup returns the sum of each threadgroup, the number of threadgroups, and the total.
func sumByLastGroup(in map[string][]float64) [][]float64 {
	return [][]float64{mlxtest.ByRow(in["x"], 32, total), {4}, total(in["x"])}
}

// ofX returns a reference with one output, computed from the input x alone.
func ofX(f func(x []float64) []float64) func(in map[string][]float64) [][]float64 {
	return func(in map[string][]float64) [][]float64 { return [][]float64{f(in["x"])} }
}

// rowsOf returns a function that applies f to each row. A row holds the elements of one threadgroup.
func rowsOf(width int, f func(row []float64) []float64) func(x []float64) []float64 {
	return func(x []float64) []float64 { return mlxtest.ByRow(x, width, f) }
}

// perElementOf returns f(i) for every index i of x.
func perElementOf(x []float64, f func(i int) float64) []float64 {
	y := make([]float64, len(x))
	for i := range y {
		y[i] = f(i)
	}
	return y
}

func doubled(x []float64) []float64 { return add(x, x) }

func add(a, b []float64) []float64 {
	return perElementOf(a, func(i int) float64 { return a[i] + b[i] })
}

func total(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return []float64{sum}
}

func count(x []float64, is func(v float64) bool) []float64 {
	n := 0.0
	for _, v := range x {
		if is(v) {
			n++
		}
	}
	return []float64{n}
}

// mirroredPositive returns the values reversed, with zeros instead of negative values.
func mirroredPositive(x []float64) []float64 {
	return reversed(perElementOf(x, func(i int) float64 { return max(x[i], 0) }))
}

func reversed(x []float64) []float64 {
	x = slices.Clone(x)
	slices.Reverse(x)
	return x
}

// exchanged returns a function that swaps the elements whose indices differ only in the given bit.
func exchanged(bit int) func(x []float64) []float64 {
	return func(x []float64) []float64 { return perElementOf(x, func(i int) float64 { return x[i^bit] }) }
}

// transposed8 returns the transpose of an 8×8 matrix, the first 64 elements of x.
func transposed8(x []float64) []float64 {
	return perElementOf(x[:64], func(i int) float64 { return x[i%8*8+i/8] })
}

package mlxc

// Sorting along an axis. NaN sorts last, and false before true. Complex numbers are ordered by their real part first;
// ArgSort and ArgPartition do not order complex NaNs. Negative axes count from the end.

// Sort returns the elements in ascending order along the axis, NaN last. Use Flip for descending order.
func (a *Array) Sort(axis int) *Array {
	return mlxSortAxis(a, axis).zerosIfEmpty()
}

// ArgSort returns the positions, as uint32, that sort the elements along the axis: a.TakeAlongAxis(a.ArgSort(i), i) is
// a.Sort(i).
func (a *Array) ArgSort(axis int) *Array {
	return mlxArgsortAxis(a, axis).zerosIfEmpty()
}

// Partition returns the elements along the axis partitioned around position kth: the element there is the one that Sort
// puts there, no element before it is larger, and none after it is smaller. A negative kth counts from the end.
func (a *Array) Partition(kth, axis int) *Array {
	return mlxPartitionAxis(a, kth, axis).zerosIfEmpty()
}

// ArgPartition returns the positions, as uint32, that partition the elements as Partition does.
func (a *Array) ArgPartition(kth, axis int) *Array {
	if a.DType() != Complex64 {
		return mlxArgpartitionAxis(a, kth, axis).zerosIfEmpty()
	}
	// MLX's comparison of complex NaNs is not a strict weak order, so its selection fails (fault
	// argpartition-complex-nan). Its sort works, and a sorted array is partitioned.
	checked := mlxArgpartitionAxis(a, kth, axis)
	if checked.Err() != nil {
		return checked
	}
	checked.Free()
	return a.ArgSort(axis)
}

// TopK returns the k largest elements along the axis, in unspecified order.
func (a *Array) TopK(k, axis int) *Array {
	return mlxTopkAxis(a, k, axis).zerosIfEmpty()
}

// SearchSorted returns, for each value, the first position at which it can be inserted into a without breaking the
// order: the number of smaller elements. a is one-dimensional and ascending; the result has the shape of values and
// dtype uint32. NaN is inserted after all numbers.
func (a *Array) SearchSorted(values *Array) *Array {
	return mlxSearchsorted(a, values, "left")
}

// SearchSortedRight is SearchSorted with the last such position: the number of elements less than or equal to the
// value.
func (a *Array) SearchSortedRight(values *Array) *Array {
	return mlxSearchsorted(a, values, "right")
}

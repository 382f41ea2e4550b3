package mlxc

// Sorting along an axis. NaNs count as the largest, false as less than true; complex
// numbers are ordered by their real part first, but ArgSort and ArgPartition give no order
// to those that are NaN. Negative axes count from the end.

// Sort returns the elements in ascending order along the axis, NaN last. Flip turns it
// around.
func (a *Array) Sort(axis int) *Array {
	return mlxSortAxis(a, axis).zerosIfEmpty()
}

// ArgSort returns the positions, as uint32, that bring the elements into ascending
// order along the axis: a.TakeAlongAxis(a.ArgSort(i), i) is a.Sort(i).
func (a *Array) ArgSort(axis int) *Array {
	return mlxArgsortAxis(a, axis).zerosIfEmpty()
}

// Partition returns the elements along the axis in an order in which the one that Sort
// puts at position kth stands there, none larger before it and none smaller behind it. A
// negative kth counts from the end.
func (a *Array) Partition(kth, axis int) *Array {
	return mlxPartitionAxis(a, kth, axis).zerosIfEmpty()
}

// ArgPartition returns the positions, as uint32, that bring the elements into an order as
// Partition's.
func (a *Array) ArgPartition(kth, axis int) *Array {
	if a.DType() != Complex64 {
		return mlxArgpartitionAxis(a, kth, axis).zerosIfEmpty()
	}
	// MLX compares NaNs of complex numbers as if they had an order, which its selection
	// does not survive. A sort does, and is a partition too.
	checked := mlxArgpartitionAxis(a, kth, axis)
	if checked.Err() != nil {
		return checked
	}
	checked.Free()
	return a.ArgSort(axis)
}

// TopK returns the k largest elements along the axis, in no order.
func (a *Array) TopK(k, axis int) *Array {
	return mlxTopkAxis(a, k, axis).zerosIfEmpty()
}

// SearchSorted returns, for every one of the values, the first position of a at which it
// can be put in without disturbing the order: how many elements are less. a has one axis
// and ascends; the result has the shape of values, as uint32. NaN goes behind all numbers.
func (a *Array) SearchSorted(values *Array) *Array {
	return mlxSearchsorted(a, values, "left")
}

// SearchSortedRight is SearchSorted with the last such position: how many elements are
// less or equal.
func (a *Array) SearchSortedRight(values *Array) *Array {
	return mlxSearchsorted(a, values, "right")
}

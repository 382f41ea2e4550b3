// Package fuzz holds tests that call every exported function and method of package mlxc with
// random arguments, in separate processes:
//
//	go test ./mlxc/internal/fuzz -run TestCalls -timeout 3h -calls 2000000 -guard end
//
// A call may fail with an error. It may not panic, end the process, hang, touch memory
// outside of an array (see testdata/guard.c), or return different numbers for a strided operand
// and for its contiguous copy.
//
// Calls come in sequences of 16. A sequence depends only on the seed and its own number. A failure
// prints the sequence and the flags that repeat it.
package fuzz

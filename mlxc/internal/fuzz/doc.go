// Package fuzz holds tests that call every exported function and method of package mlxc with
// random arguments, in separate processes:
//
//	go test ./mlxc/internal/fuzz -run TestCalls -timeout 3h -calls 2000000 -guard end
//
// A call may fail with an error. It may not panic, end the process, hang, touch memory
// outside of an array (see testdata/guard.c), or compute other numbers for a strided operand
// than for a contiguous copy of it.
//
// Calls come in sequences of 16, which depend on nothing but the seed and their number. A
// failure prints the sequence and the flags that repeat it.
package fuzz

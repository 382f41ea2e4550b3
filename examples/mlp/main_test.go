package main

import (
	"fmt"
	"io"
	"os"
)

func Example() {
	fmt.Println(run(io.Discard, os.Stdout))
	// Output:
	// accuracy 100.0 %
	// <nil>
}

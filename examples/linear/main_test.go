package main

import (
	"fmt"
	"io"
	"os"
)

func Example() {
	fmt.Println(run(io.Discard, os.Stdout))
	// Output:
	// weight [2.00 -3.00 0.50], bias 4.00
	// <nil>
}

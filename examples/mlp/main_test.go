package main

import (
	"fmt"
	"io"
	"os"
)

func Example() {
	fmt.Println(run(io.Discard, os.Stdout))
	// Output:
	// 100.0 % of the points on the right arm
	// <nil>
}

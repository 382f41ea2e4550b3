// Command sarifcheck checks the JSON on standard input against the schema of SARIF 2.1.0. It exits 1 if it is invalid.
//
//	metalsan --sarif findings.sarif FILE
//	go -C tools run ./sarifcheck < findings.sarif
//
// The schema is a file of the module gosec, a dependency of golangci-lint, so that this repository needs no copy.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	if err := check(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "sarifcheck:", err)
		os.Exit(1)
	}
}

func check(r io.Reader) error {
	var module struct{ Dir string }
	text, err := exec.Command("go", "mod", "download", "-json", "github.com/securego/gosec/v2").Output()
	if err == nil {
		err = json.Unmarshal(text, &module)
	}
	if err != nil {
		return fmt.Errorf("the module with the schema: %w", err)
	}
	name := filepath.Join(module.Dir, "report", "sarif", "testdata", "sarif-schema-2.1.0.json")
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(name)
	if err != nil {
		return err
	}
	log, err := jsonschema.UnmarshalJSON(r)
	if err != nil {
		return err
	}
	return schema.Validate(log)
}

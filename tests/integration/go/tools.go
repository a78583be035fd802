//go:build tools

// Package tools imports the program, so that go.mod keeps its dependencies.
package tools

import _ "github.com/prometheus/prometheus/cmd/prometheus"

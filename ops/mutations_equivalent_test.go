package ops

// equivalentMutants are the mutants of our kernels that compute the same and break no rule, each
// with the reason.
var equivalentMutants = map[string]string{}

// missedMutants are wrong, and nothing shows it: each with the reason.
var missedMutants = map[string]string{}

# Shared by scripts/check, scripts/test, scripts/test-system and scripts/coverage. Sourced after scripts/lib.sh, never run.

passed=0
failed=0

# A check counts as one test.
check() { # TITLE COMMAND...
  if step "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# set_up STEP...: the named functions of lib.sh, in this order. Where one fails, the run ends with it.
set_up() {
  local one
  echo "Setting up"
  for one in "$@"; do
    $one || {
      failed=1
      summary
      exit 1
    }
  done
}

# The last line of a run, which CI reads.
summary() {
  echo
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}

run_checks() {
  local bin="$ROOT/node_modules/.bin" tsc="$ROOT/node_modules/typescript-7/bin/tsc"
  echo "Checks"
  check "types" node "$tsc" --noEmit
  check "types of the console" node "$tsc" -p web --noEmit
  check "lint" "$bin/oxlint"
  check "format" "$bin/oxfmt" --check
  check "dependency rules" "$bin/depcruise" src scripts/bundle.ts scripts/client-types.ts --config .dependency-cruiser.cjs
  check "dead code" "$bin/knip"
}

# Runs one project of vitest.config.ts, with further options, and counts its tests. A file that does not load, and an error outside of a test, count as one failure each.
run_project() { # PROJECT OPTION...
  local report="$ROOT/test-results/$1.json" counts status=0
  rm -f "$report"
  node_modules/.bin/vitest run --project "$@" --reporter=default --reporter=json --outputFile.json="$report" || status=$?
  counts=$(node -e '
    const status = Number(process.argv[2]);
    let passed = 0, failed = 0;
    try {
      const report = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
      passed = report.numPassedTests;
      failed = report.numFailedTests + report.testResults.filter((file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed")).length;
    } catch {}
    if (status !== 0 && failed === 0) failed = 1;
    console.log(passed, failed);
  ' "$report" "$status")
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
}

# CPU seconds of what this script has run so far, in `cpu_seconds`. Not in a subshell, which would know only its own.
read_cpu_seconds() {
  local file
  file=$(mktemp)
  times >"$file"
  cpu_seconds=$(awk -F'[ms ]' 'NR == 2 { printf "%d", $1 * 60 + $2 + $4 * 60 + $5 }' "$file")
  rm -f "$file"
}

start_cpu_seconds() {
  read_cpu_seconds
  cpu_before=$cpu_seconds
}

print_cpu_seconds() {
  read_cpu_seconds
  echo
  echo "CPU seconds after the set-up: $((cpu_seconds - cpu_before))"
}

# Properties take their seed from here (test/support/seed.ts).
print_seed() { echo "Seed of the properties: ${SEED:-1} (SEED=… tries others)"; }

# `npm test -- FILE…`: only these tests, without the checks.
run_files() { # FILE_OR_OPTION...
  exec node_modules/.bin/vitest run "$@"
}

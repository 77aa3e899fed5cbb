"""Runs checks, prints a line for each, and tells whether all held."""

import inspect
import traceback

_checks = []


def check(sentence):
    """Registers a check under the sentence that it proves. Checks run in the order of the file."""

    def register(function):
        _checks.append((sentence, function))
        return function

    return register


async def run(title, *given):
    """Runs every check and returns the exit status."""
    failed = 0
    for sentence, function in _checks:
        try:
            result = function(*given)
            if inspect.isawaitable(result):
                await result
            print(f"ok      {title}: {sentence}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {title}: {sentence}", flush=True)
            traceback.print_exc()
    print(f"{len(_checks) - failed} of {len(_checks)} {title} checks held", flush=True)
    return 1 if failed or not _checks else 0


def equal(found, expected):
    """Fails when two values differ, and says how."""
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def raises(kind, call):
    """Fails unless a call raises an error of a kind, and returns the error."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind} was raised")

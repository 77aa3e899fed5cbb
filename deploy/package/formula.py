#!/usr/bin/env python3
"""Prints a Homebrew formula for the archives in a folder: formula.py VERSION REPOSITORY FOLDER."""

import hashlib
import pathlib
import sys

version, repository, folder = sys.argv[1:]
systems = {"macos": "apple-darwin", "linux": "unknown-linux-gnu"}
processors = {"arm": "aarch64", "intel": "x86_64"}


def block(system):
    for processor, arch in processors.items():
        path = pathlib.Path(folder, f"pudu-{version}-{arch}-{systems[system]}.tar.gz")
        if path.exists():
            yield f"""    on_{processor} do
      url "{repository}/releases/download/v{version}/{path.name}"
      sha256 "{hashlib.sha256(path.read_bytes()).hexdigest()}"
    end
"""


blocks = {system: "".join(block(system)) for system in systems}
archives = "\n".join(f"  on_{system} do\n{inner}  end\n" for system, inner in blocks.items() if inner)
if not archives:
    sys.exit(f"formula.py: there is no archive of pudu {version} in {folder}")
print(f"""class Pudu < Formula
  desc "Super-agent that lives in your team's chats"
  homepage "{repository}"
  version "{version}"
  license "MIT"

{archives}
  def install
    bin.install "pudu"
    man1.install "pudu.1"
    bash_completion.install "completions/pudu.bash" => "pudu"
    fish_completion.install "completions/pudu.fish"
    zsh_completion.install "completions/_pudu"
    pkgshare.install "config.example.yaml"
  end

  def post_install
    [etc/"pudu", var/"pudu"].each(&:mkpath)
  end

  service do
    run opt_bin/"pudu"
    keep_alive true
    working_dir etc/"pudu"
    environment_variables PUDU_HOME: var/"pudu"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/pudu --version")
    assert_match "hello", pipe_output("#{{bin}}/pudu chat", "hello")
  end
end""")

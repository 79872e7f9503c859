#!/usr/bin/env python3
"""Speed of etime's engine and of llama.cpp on one model, measured in turns in one run.

    python3 peer/measure.py                     builds llama.cpp from source for this processor, converts, measures
    python3 peer/measure.py --rounds 5 --json   more rounds, for machines

Needs a C++ compiler, pip and `etime model pull smollm2`. Everything it makes lies in target/peer.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "peer"
VENV = FOLDER / "venv"
PACKAGE = "llama-cpp-python==0.3.36"
BATCHES = [1, 4, 8, 16]
PREFILL_TOK, CONTEXT_TOK, DECODE_STEPS = 512, 64, 64
# llama.cpp's numbers of file types.
FILE_TYPES = {"F16": 1, "Q8_0": 7}


def build():
    """A virtual environment with llama.cpp compiled here, for this processor."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    found = subprocess.run([str(python), "-c", "import llama_cpp"], capture_output=True)
    if found.returncode != 0:
        env = dict(os.environ, CMAKE_ARGS="-DGGML_NATIVE=ON")
        pip = [str(python), "-m", "pip", "install", "--no-binary", "llama-cpp-python", PACKAGE]
        subprocess.run(pip, check=True, env=env)
    return python


def convert(llama_cpp, source):
    """The model in each storage, requantised from the file that is here."""
    files = {}
    for name, file_type in FILE_TYPES.items():
        target = FOLDER / f"{source.stem.split('.')[0]}.{name}.gguf"
        if not target.exists():
            params = llama_cpp.llama_model_quantize_default_params()
            params.ftype = file_type
            params.allow_requantize = True
            partial = target.with_suffix(".partial")
            code = llama_cpp.llama_model_quantize(str(source).encode(), str(partial).encode(), ctypes.byref(params))
            if code != 0:
                sys.exit(f"{source}: llama.cpp cannot convert it to {name}")
            partial.rename(target)
        files[name] = target
    return files


class Peer:
    """llama.cpp with one model, driven batch by batch as etime's engine is."""

    def __init__(self, llama_cpp, path, threads):
        self.lib = llama_cpp
        model_params = llama_cpp.llama_model_default_params()
        model_params.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), model_params)
        params = llama_cpp.llama_context_default_params()
        # Each sequence gets an equal share of the context.
        params.n_ctx = max(BATCHES) * PREFILL_TOK
        params.n_batch = params.n_ubatch = PREFILL_TOK
        params.n_seq_max = max(BATCHES)
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.vocab = llama_cpp.llama_vocab_n_tokens(vocab)
        self.batch = llama_cpp.llama_batch_init(PREFILL_TOK, 0, max(BATCHES))

    def forget(self):
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)

    def decode(self, works):
        """One pass; `works` are (sequence, first position, tokens), with logits after the last token of each."""
        batch = self.batch
        n = 0
        for seq, start, tokens in works:
            for i in range(tokens):
                batch.token[n] = (start + i) * 31 % self.vocab
                batch.pos[n] = start + i
                batch.n_seq_id[n] = 1
                batch.seq_id[n][0] = seq
                batch.logits[n] = i + 1 == tokens
                n += 1
        batch.n_tokens = n
        begin = time.perf_counter()
        if self.lib.llama_decode(self.context, batch) != 0:
            sys.exit("llama.cpp: a pass failed")
        self.lib.llama_synchronize(self.context)
        return time.perf_counter() - begin

    def measure(self):
        prefill_s = []
        for _ in range(4):
            self.forget()
            prefill_s.append(self.decode([(0, 0, PREFILL_TOK)]))
        speed = {"prefill": PREFILL_TOK / min(prefill_s[1:])}
        for n in BATCHES:
            self.forget()
            for seq in range(n):
                self.decode([(seq, 0, CONTEXT_TOK)])
            spent_s = sum(
                self.decode([(seq, CONTEXT_TOK + step, 1) for seq in range(n)]) for step in range(DECODE_STEPS)
            )
            speed[n] = n * DECODE_STEPS / spent_s
        return speed


def ours(path):
    etime = ROOT / "target" / "release" / "etime"
    out = subprocess.run([str(etime), "speed", "engine", str(path), "--json"], check=True, capture_output=True)
    report = json.loads(out.stdout)
    sizes = (report["prefill_tok"], report["context_tok"], [row["batch"] for row in report["decode"]])
    if sizes != (PREFILL_TOK, CONTEXT_TOK, BATCHES):
        sys.exit(f"etime measured {sizes}, this script {(PREFILL_TOK, CONTEXT_TOK, BATCHES)}")
    speed = {"prefill": report["prefill_tok_per_s"]}
    share = {}
    for row in report["decode"]:
        speed[row["batch"]] = row["tok_per_s"]
        share[row["batch"]] = row["tok_per_s"] / row["limit_tok_per_s"]
    return speed, share, report["read_bytes_per_s"], report["decode"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each program (default 3)")
    parser.add_argument("--model", type=Path, help="GGUF file (default: the pulled SmolLM2)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.inside:
        subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True, stdout=sys.stderr)
        FOLDER.mkdir(parents=True, exist_ok=True)
        os.execv(build(), [str(VENV / "bin" / "python"), __file__, "--inside", *sys.argv[1:]])

    import llama_cpp

    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    models = Path(os.environ.get("ETIME_MODELS", Path.home() / ".cache" / "etime" / "models"))
    source = args.model or models / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not source.is_file():
        sys.exit(f"{source}: not here; run `etime model pull smollm2`")
    threads = os.cpu_count()
    results = []
    for name, path in convert(llama_cpp, source).items():
        rounds = []
        for _ in range(args.rounds):
            mine, share, bandwidth, decode = ours(path)
            peer = Peer(llama_cpp, path, threads)
            theirs = peer.measure()
            llama_cpp.llama_batch_free(peer.batch)
            llama_cpp.llama_free(peer.context)
            llama_cpp.llama_model_free(peer.model)
            rounds.append((mine, theirs, share, bandwidth))
        for what in ["prefill", *BATCHES]:
            results.append({
                "storage": name,
                "what": what if what == "prefill" else f"decode {what}",
                "etime_tok_per_s": statistics.median(r[0][what] for r in rounds),
                "llama_cpp_tok_per_s": statistics.median(r[1][what] for r in rounds),
                "ratio": statistics.median(r[0][what] / r[1][what] for r in rounds),
                "share_of_read": statistics.median(r[2][what] for r in rounds) if what != "prefill" else None,
                "read_bytes_per_s": statistics.median(r[3] for r in rounds),
            })
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{threads} threads, {args.rounds} rounds in turns, medians; {PACKAGE} built here")
    print(f"{'':8}{'':12}{'etime':>8}{'llama.cpp':>11}{'ratio':>7}{'of the read limit':>19}")
    for r in results:
        share = "" if r["share_of_read"] is None else f"{100 * r['share_of_read']:.0f} %"
        print(f"{r['storage']:8}{r['what']:12}{r['etime_tok_per_s']:8.0f}{r['llama_cpp_tok_per_s']:11.0f}{r['ratio']:7.2f}{share:>19}")
    print(f"memory read {results[0]['read_bytes_per_s'] / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()

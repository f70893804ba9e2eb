# The template code-interpreter-v1: what its image holds beside that of the base template, and how it starts. Its hash, with that
# of the files beside it, of the base image and of the interpreter, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='runs code of several languages, as @e2b/code-interpreter asks for it'
STARTER_IMAGE=svc/code-interpreter

# python3-munkres: without it matplotlib's font library asks for scipy, which brings compilers and 600 MB. The BLAS library
# is what makes linear algebra fast; the font has Chinese, Japanese and Korean characters. Figures of plotly, which users install,
# cannot be shown without nbformat.
STARTER_PACKAGES=(
  python3-ipykernel python3-matplotlib python3-munkres python3-nbformat python3-numpy python3-openpyxl python3-pandas python3-pil
  python3-requests libopenblas0-pthread fonts-wqy-zenhei
)

# For those who ask for these languages: 100 and 215 MB. Of Java the runtime is enough: it has JShell and the compiler.
declare -A STARTER_SETS=([r]='r-base-core r-cran-irkernel' [java]='openjdk-17-jre-headless')

# The folder of the checkout that goes into the image, where it is there, and settings of the image beside those of the base.
STARTER_BUILT=dist/interpreter
STARTER_NPM=()
STARTER_CHANGES=()
INTERPRETER_DIR=/opt/interpreter

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START='sudo /root/.jupyter/start-up.sh'
STARTER_READY='curl -fsS -o /dev/null http://localhost:49999/health'
# What a client does first, and what its answer has.
STARTER_FIRST="curl -fsS --json '{\"code\":\"6 * 7\"}' http://localhost:49999/execute"
STARTER_ANSWER='"text":"42"'
STARTER_HINT='Sandbox.create() of @e2b/code-interpreter, or Sandbox.create("code-interpreter-v1")'

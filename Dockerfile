# symperf in a container, as a user without rights:
#   docker build -t symperf .
#   docker run --rm -v symperf-cache:/cache -v "$PWD":/work symperf train llama-2-7b -s h100-sxm --batch 8 --sequence 4096
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY formulas formulas
COPY codegen codegen
COPY symperf symperf
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
# Optional packages, as in pip install 'symperf[...]'.
ARG EXTRAS=book,calibrate,plot,sweep
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]" \
    && useradd --create-home symperf \
    && install --directory --owner=symperf --group=symperf --mode=0700 /cache /work
USER symperf
ENV SYMPERF_CACHE=/cache
VOLUME /cache
WORKDIR /work
ENTRYPOINT ["symperf"]
CMD ["--help"]

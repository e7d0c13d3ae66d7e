from markers import anyio_backend as anyio_backend

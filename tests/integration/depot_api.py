"""An API of our own in FastAPI: uploads, OAuth2, arrays in every place, enums, nested bodies.

It keeps each request as it stood on the wire, and answers what FastAPI made of it.
"""

import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from fastapi import (
    APIRouter,
    Body,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    Header,
    HTTPException,
    Query,
    Request,
    Response,
    Security,
    UploadFile,
)
from fastapi.security import (
    OAuth2,
    OAuth2PasswordBearer,
    OAuth2PasswordRequestForm,
    SecurityScopes,
)
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from integration.recorder import Recorded
from planted import planted

TOKEN = planted("depot token")
SERVICE_TOKEN = planted("depot service token")

person = OAuth2PasswordBearer(tokenUrl="token", scopes={"orders": "Read and write orders"})
service = OAuth2(flows={"clientCredentials": {"tokenUrl": "token", "scopes": {"stock": "Count stock"}}})
router = APIRouter()


def held(scopes: SecurityScopes, token: Annotated[str, Depends(person)]) -> list[str]:
    if token != TOKEN:
        raise HTTPException(401, "wrong token", {"WWW-Authenticate": "Bearer"})
    return scopes.scopes


Held = Annotated[list[str], Security(held, scopes=["orders"])]


class State(StrEnum):
    OPEN = "open"
    PACKED = "packed"
    ON_THE_WAY = "on the way"


class Address(BaseModel):
    street: str
    zip: str = Field(pattern=r"^\d{4,5}$")
    lines: list[str] | None = None


class Line(BaseModel):
    sku: str
    count: int = Field(ge=1, le=1000)
    price: Decimal = Decimal("0")
    options: dict[str, str | int | None] = {}


class Order(BaseModel):
    lines: list[Line] = Field(min_length=1)
    ship_to: Address
    state: State = State.OPEN
    due: datetime.date | None = None


class Change(BaseModel):
    note: str | None = None
    state: State | None = None
    ship_to: Address | None = None


class Page(BaseModel):
    model_config = {"extra": "forbid"}

    size: int = Field(20, ge=1, le=100)
    states: list[State] = []
    before: datetime.datetime | None = None


@router.post("/token", operation_id="makeToken")
def make_token(form: Annotated[OAuth2PasswordRequestForm, Depends()]) -> dict[str, Any]:
    return {"user": form.username, "scopes": form.scopes, "grant": form.grant_type}


@router.post("/files", operation_id="uploadFile", status_code=201)
async def upload_file(
    _: Held,
    file: UploadFile,
    title: Annotated[str, Form()],
    tags: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies defaults
    public: Annotated[bool, Form()] = False,
) -> dict[str, Any]:
    data = await file.read()
    return {
        "name": file.filename,
        "type": file.content_type,
        "hex": data.hex(),
        "title": title,
        "tags": tags,
        "public": public,
    }


@router.post("/files/batch", operation_id="uploadFiles")
async def upload_files(_: Held, files: Annotated[list[UploadFile], File()]) -> list[list[str | None]]:
    return [[file.filename, (await file.read()).decode()] for file in files]


@router.get("/files/{path:path}", operation_id="downloadFile")
def download_file(_: Held, path: str) -> Response:
    return Response(b"\x89\x00" + path.encode(), media_type="application/octet-stream")


@router.get("/parts", operation_id="findParts")
def find_parts(
    ids: Annotated[list[int], Query()],
    state: Annotated[list[State], Query()] = [],  # noqa: B006
    x_warehouse: Annotated[list[str], Header()] = [],  # noqa: B006
    visitor: Annotated[str | None, Cookie()] = None,
    after: datetime.date | None = None,
) -> dict[str, Any]:
    return {"ids": ids, "state": state, "warehouse": x_warehouse, "visitor": visitor, "after": after}


@router.get("/orders", operation_id="listOrders")
def list_orders(_: Held, page: Annotated[Page, Query()]) -> Page:
    return page


@router.post("/orders", operation_id="makeOrder", status_code=201)
def make_order(_: Held, order: Order) -> Order:
    return order


@router.patch("/orders/{number}", operation_id="changeOrder")
def change_order(_: Held, number: int, change: Change) -> dict[str, Any]:
    return {"number": number, "given": change.model_dump(exclude_unset=True)}


@router.put("/orders/{number}/state", operation_id="setState")
def set_state(_: Held, number: int, state: Annotated[State, Body()]) -> dict[str, Any]:
    return {"number": number, "state": state}


@router.delete("/orders/{number}", operation_id="dropOrder", status_code=204)
def drop_order(_: Held, number: int, reason: Annotated[str | None, Body(embed=True)] = None) -> None:
    if number == 404:
        raise HTTPException(404, {"reason": reason})


@router.get("/states/{state}", operation_id="getState")
def get_state(state: State) -> State:
    return state


@router.put(
    "/labels/{sku}",
    operation_id="setLabel",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"text/plain": {"schema": {"type": "string"}}, "image/*": {"schema": {}}},
        }
    },
)
async def set_label(request: Request, sku: str) -> dict[str, Any]:
    body = await request.body()
    return {"sku": sku, "type": request.headers["content-type"], "hex": body.hex()}


@router.get("/stock", operation_id="countStock")
def count_stock(authorization: Annotated[str, Security(service, scopes=["stock"])]) -> dict[str, Any]:
    return {"right": authorization == f"Bearer {SERVICE_TOKEN}", "echo": authorization}


class Recording:
    """Keeps each request of an application as it stood on the wire."""

    def __init__(self, app: ASGIApp, seen: list[Recorded]) -> None:
        self._app, self._seen = app, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body = bytearray()

        async def recorded() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        await self._app(scope, recorded, send)
        query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        target = scope["raw_path"].decode() + query
        self._seen.append(Recorded(scope["method"], target, headers, bytes(body)))


def create_depot(seen: list[Recorded]) -> ASGIApp:
    """Return the application; ``seen`` gets its requests."""
    app = FastAPI(title="Depot", version="1", docs_url=None, redoc_url=None)
    app.include_router(router)
    return Recording(app, seen)

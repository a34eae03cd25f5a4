"""An OpenAPI 3 document of a reading room, with references, a recursive schema, and an example of one answer."""

from __future__ import annotations

from typing import Any

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3", "info": {"title": "Reading Room", "version": "1"},
    "paths": {
        "/shelves/{shelf}": {
            "parameters": [{"name": "shelf", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "operationId": "get_shelf", "summary": "Show a shelf.",
                "responses": {"404": {"description": "no shelf"}, "200": {"$ref": "#/components/responses/Shelf"}}}},
        "/slips": {
            "post": {
                "summary": "Ask for a volume.",
                "requestBody": {"required": True, "content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/Slip"}}}},
                "responses": {"201": {"description": "made"}}}}},
    "components": {
        "responses": {"Shelf": {"description": "ok", "content": {"application/json": {"examples": {
            "small": {"value": {"shelf": "A3", "places": 12}}}}}}},
        "schemas": {"Slip": {"type": "object", "required": ["volume"], "properties": {
            "volume": {"type": "string"}, "before": {"$ref": "#/components/schemas/Slip"}}}}}}
